/* The editor of one recipe: a preset or file with its parameters, or matrices, with a slider and a field for each number. */
import {check, choice, options, segmented, slider} from "./controls.js";
import {fill, h} from "./dom.js";

export const VARIABLES = (k) => (k === 2 ? ["x", "m"] : ["x", "m₁", "m₂", "m₃", "m₄", "m₅", "m₆", "m₇"].slice(0, k));

/* The meaning of each number of a preset, and the ends of its slider. */
const PARAMETERS = {
    gamma: {label: "Γ, noise of x", low: 0, high: 4, scale: "power"},
    nu: {label: "ν, noise of m", low: 0.1, high: 20, scale: "log", follows: (r) => (2 * r.D[1][1]) / r.mass[0]},
    m_inv: {label: "1 / mass", low: 0.05, high: 50, scale: "log", follows: (r) => 1 / r.mass[0]},
};
const BETA = {
    low: 0.05,
    high: 40,
    scale: "log"
};
const INIT = {
    low: 0,
    high: 4,
    scale: "power"
};
const MASS = {
    low: 0.01,
    high: 20,
    scale: "log"
};

const copyMatrix = (a) => a.map((row) => [...row]);
const numbers = (value, count) => (Array.isArray(value) ? [...value] : Array(count).fill(value));

/* A state of the editor: what is sent as a recipe follows from it. */
export function presetState(preset) {
    const values = {};
    for (const parameter of preset.parameters)
        if (parameter.initial !== null) values[parameter.name] = JSON.parse(parameter.initial);
    return {form: "preset", preset: preset.name, k: preset.k, values, initial: structuredClone(values)};
}

export function matrixState(answer) {
    return {
        form: "matrices",
        name: answer.name,
        k: answer.k,
        D: copyMatrix(answer.D),
        Q: copyMatrix(answer.Q),
        mass: [...answer.mass],
        init: [...answer.init],
        beta: numbers(answer.beta, 2),
        symmetric: true
    };
}

/* The recipe as the server takes it. Presets send only what differs from their defaults. */
export function recipeOf(state) {
    if (state.form === "file") return state.path;
    if (state.form === "preset") {
        const changed = Object.entries(state.values)
                            .filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(state.initial[key]));
        return {preset: state.preset, ...Object.fromEntries(changed)};
    }
    const auxiliary = state.k > 1 ? {mass: state.mass, init: state.init} : {};
    return {
        name: state.name,
        D: state.D,
        Q: state.Q,
        ...auxiliary,
        beta: state.beta[0] === state.beta[1] ? state.beta[0] : state.beta
    };
}

/* host: {about, files(), answer(): the last valid analysis, onchange(state)} */
export class RecipeEditor {
    constructor(host) {
        this.host = host;
        this.source = h("select", {onchange: () => this.choose(this.source.value)});
        this.form = segmented(
            "Form of the recipe", [["preset", "Parameters"], ["matrices", "Matrices D and Q"]], "preset",
            (form) => this.switchForm(form));
        this.body = h("div", {class: "stack"});
        this.element =
            h("div", {class: "stack"}, h("label", {class: "field"}, h("span", null, "Process"), this.source),
              this.form.element, this.body);
    }

    async show(state) {
        this.state = state;
        await this.fillSources();
        this.form.value = state.form === "matrices" ? "matrices" : "preset";
        this.form.buttons[0].disabled = state.form === "file";
        this.build();
    }

    async fillSources() {
        const presets = this.host.about.presets.map((preset) => [`preset:${preset.name}`, preset.name]);
        const files = this.host.files().map((file) => [`file:${file.path}`, file.path.replace(/^shipped:/, "")]);
        const own = this.state.form === "matrices" ? [["own", `${this.state.name} (matrices)`]] : [];
        options(
            this.source,
            [...own, {group: "Presets", rows: presets}, ...(files.length ? [{group: "Files", rows: files}] : [])],
            {preset: `preset:${this.state.preset}`, file: `file:${this.state.path}`, matrices: "own"}[this.state.form]);
    }

    choose(value) {
        const [kind, ...rest] = value.split(":"), name = rest.join(":");
        if (kind === "preset")
            this.show(presetState(this.host.about.presets.find((preset) => preset.name === name)));
        else if (kind === "file")
            this.show({form: "file", path: name, k: 0});
        this.changed();
    }

    switchForm(form) {
        const answer = this.host.answer();
        if (form === "matrices") {
            if (!answer) return (this.form.value = "preset");
            this.before = this.state;
            this.show({...matrixState(answer), name: answer.name.replace(/-own$/, "") + "-own"});
        } else
            this.show(
                this.before?.form === "preset" ?
                    this.before :
                    presetState(this.host.about.presets.find((preset) => preset.name === "psld")));
        this.changed();
    }

    changed() { this.host.onchange(this.state); }

    build() {
        const state = this.state;
        this.followers = [];
        if (state.form === "file")
            return fill(
                this.body,
                h("p", {class: "small"},
                  "Numbers of a file are as they are written there. Choose “Matrices D and Q” to turn them."));
        if (state.form === "preset")
            this.buildPreset();
        else
            this.buildMatrices();
    }

    /* -- Presets -- */

    buildPreset() {
        const preset = this.host.about.presets.find((row) => row.name === this.state.preset), parts = [];
        for (const parameter of preset.parameters) {
            if (parameter.name === "beta")
                parts.push(this.betaRows(this.state.values, preset));
            else if (parameter.name === "init")
                parts.push(this.initRows(this.state.values, preset.k));
            else
                parts.push(this.parameterRow(parameter));
        }
        fill(this.body, h("p", {class: "small"}, preset.summary), parts);
    }

    /* A parameter that follows from the others, until it is set. */
    parameterRow(parameter) {
        const about = PARAMETERS[parameter.name] || {label: parameter.name, low: 0.01, high: 10, scale: "log"},
              values = this.state.values;
        const row = slider({
            ...about,
            value: values[parameter.name] ?? NaN,
            hint: parameter.help,
            oninput: (value) => {
                values[parameter.name] = value;
                if (box) box.value = false;
                this.changed();
            }
        });
        let box = null;
        if (parameter.initial === null && about.follows) {
            box = check("follows from the others", !(parameter.name in values), (on) => {
                if (on)
                    delete values[parameter.name];
                else
                    values[parameter.name] = row.value;
                this.changed();
            }, parameter.help);
            box.input.setAttribute("aria-label", `${about.label} follows from the other parameters`);
            this.followers.push({row, box, name: parameter.name, follows: about.follows});
        }
        return [row.element, box && h("div", {class: "follow"}, box.element)];
    }

    betaRows(values) {
        const pair = numbers(values.beta, 2), constant = !Array.isArray(values.beta) || pair[0] === pair[1];
        const write = () => {
            values.beta = box.value ? pair[0] : [...pair];
            this.changed();
        };
        const first = slider({
            label: "β at t = 0",
            value: pair[0],
            ...BETA,
            hint: "Speed of time at the data",
            oninput: (value) => {
                pair[0] = value;
                if (box.value) pair[1] = last.value = value;
                write();
            }
        });
        const last = slider({
            label: "β at t = 1",
            value: pair[1],
            ...BETA,
            hint: "Speed of time at the noise",
            oninput: (value) => {
                pair[1] = value;
                if (box.value) pair[0] = first.value = value;
                write();
            }
        });
        const box = check("the same speed at all times", constant, (on) => {
            if (on) pair[1] = last.value = pair[0];
            write();
        });
        return [h("hr"), first.element, last.element, h("div", {class: "follow"}, box.element)];
    }

    initRows(values, k) {
        const each = numbers(values.init, k - 1);
        return each.map((value, i) => slider({
                                          label: `init of ${VARIABLES(k)[i + 1]}`,
                                          value,
                                          ...INIT,
                                          hint: "Variance at t = 0 in units of the mass",
                                          oninput: (v) => {
                                              each[i] = v;
                                              values.init = each.every((other) => other === each[0]) &&
                                                      !Array.isArray(values.init) ?
                                                  each[0] :
                                                  [...each];
                                              this.changed();
                                          }
                                      }).element);
    }

    /* -- Matrices -- */

    buildMatrices() {
        const state = this.state, names = VARIABLES(state.k);
        const size = choice(
            "Variables", [["1", "1: x"], ["2", "2: x, m"], ["3", "3: x, m₁, m₂"], ["4", "4: x, m₁ … m₃"]],
            String(Math.min(4, state.k)), (k) => this.resize(Number(k)),
            "The data variable and its auxiliary variables");
        const lock = check("keep D symmetric and Q skew-symmetric", state.symmetric, (on) => {
            state.symmetric = on;
            if (on) this.mirror();
            this.build();
            this.changed();
        });
        const rows = state.mass.map((value, i) => slider({
                                                      label: `mass of ${names[i + 1]}`,
                                                      value,
                                                      ...MASS,
                                                      hint: "Its stationary variance",
                                                      oninput: (v) => {
                                                          state.mass[i] = v;
                                                          this.changed();
                                                      }
                                                  }).element);
        fill(
            this.body, h("label", {class: "field"}, h("span", null, "Name"), this.nameField()), size.element,
            this.matrix("D", "D, noise (symmetric)", 8),
            state.k > 1 && this.matrix("Q", "Q, exchange (skew-symmetric)", 8), state.k > 1 && lock.element, h("hr"),
            rows, state.k > 1 && this.initRows(state, state.k), this.betaRows(state));
    }

    nameField() {
        return h("input", {
            value: this.state.name,
            maxlength: "60",
            oninput: (event) => {
                this.state.name = event.target.value || "unnamed";
                this.changed();
            }
        });
    }

    matrix(key, label, high) {
        const {k, symmetric} = this.state, a = this.state[key], names = VARIABLES(k), cells = [],
                  sign = key === "D" ? 1 : -1;
        for (let i = 0; i < k; i++)
            for (let j = 0; j < k; j++) {
                const diagonal = i === j, given = symmetric && (j < i || (key === "Q" && diagonal));
                const cell = slider({
                    label: `${key}, row ${names[i]}, column ${names[j]}`,
                    value: a[i][j],
                    low: diagonal && key === "D" ? 0 : -high,
                    high,
                    scale: "power",
                    cell: true,
                    oninput: (value) => {
                        a[i][j] = value;
                        if (symmetric && !diagonal) {
                            a[j][i] = value === 0 ? 0 : sign * value;
                            cells[j * k + i].value = a[j][i];
                        }
                        this.changed();
                    }
                });
                if (given) cell.element.classList.add("given"), (cell.disabled = true);
                cells.push(cell);
            }
        const grid = h("div", {class: "matrix", role: "group", "aria-label": label}, cells.map((cell) => cell.element));
        grid.style.setProperty("--k", k);
        return h("div", null, h("div", {class: "label"}, label), grid);
    }

    mirror() {
        const {k, D, Q} = this.state;
        for (let i = 0; i < k; i++)
            for (let j = 0; j <= i; j++) {
                D[i][j] = D[j][i];
                Q[i][j] = i === j ? 0 : -Q[j][i];
            }
    }

    resize(k) {
        const old = this.state,
              grown = (a, fresh) =>
                  Array.from({length: k}, (_, i) => Array.from({length: k}, (_, j) => a[i]?.[j] ?? fresh(i, j)));
        const state = {...old, k};
        state.D = grown(old.D, (i, j) => (i === j ? 0.5 : 0));
        state.Q = grown(old.Q, (i, j) => (j === i + 1 ? -0.5 : i === j + 1 ? 0.5 : 0));
        state.mass = Array.from({length: k - 1}, (_, i) => old.mass[i] ?? 1);
        const init = numbers(old.init, old.k - 1);
        state.init = Array.from({length: k - 1}, (_, i) => init[i] ?? 0.04);
        this.show(state);
        this.changed();
    }

    /* Numbers that follow from others are shown with their present values. */
    follow(answer) {
        for (const {row, box, name, follows} of this.followers || [])
            if (box.value && !(name in this.state.values) && answer.k === 2)
                row.value = Number(follows(answer).toPrecision(6));
    }
}
