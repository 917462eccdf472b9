/* Process lab: up to three recipes with sliders, and their analysis at once. */
import {files, get, post} from "./api.js";
import {commandLine} from "./command.js";
import {slider} from "./controls.js";
import {copy, fill, h, note, number, perFrame, save} from "./dom.js";
import {Diffusion} from "./lab_diffusion.js";
import {matrixState, presetState, RecipeEditor, recipeOf, VARIABLES} from "./lab_recipe.js";
import {Link, Plot} from "./plot.js";

const LETTERS = ["A", "B", "C"], POINTS = 128, STYLES = ["", "dashed", "dotted", "dotdash"], PATHS = 2;

export async function create(about) {
    const lab = new Lab(about);
    await lab.start();
    return lab;
}

class Lab {
    constructor(about) {
        this.about = about;
        this.recipes =
            [{state: presetState(about.presets.find((preset) => preset.name === "psld") || about.presets[0])}];
        this.selected = 0;
        this.link = new Link();
        this.link.listeners.add(() => this.plots && this.drawEllipses());
        this.time = 0.1;
        this.files = [];
        this.editor = new RecipeEditor({
            about,
            files: () => this.files,
            answer: () => this.current.answer,
            onchange: (state) => this.edited(state)
        });
        this.diffusion = new Diffusion(about, () => this.recipes.map((recipe, i) => ({
                                                                         letter: LETTERS[i],
                                                                         c: i,
                                                                         recipe: recipeOf(recipe.state),
                                                                         valid: recipe.answer?.valid,
                                                                         name: recipe.answer?.name
                                                                     })));
        this.build();
    }

    get current() { return this.recipes[this.selected]; }

    async start() {
        await this.listFiles();
        await this.editor.show(this.current.state);
        this.drawPicks();
        await this.analyse();
    }

    async listFiles() {
        try {
            this.files = await files("recipe");
        } catch (problem) {
            note(problem.message, true);
        }
    }

    show(values) {
        if (values.get("recipe")) this.setRecipe({form: "file", path: values.get("recipe"), k: 0});
        this.diffusion.show();
    }

    hide() { this.diffusion.hide(); }

    async setRecipe(state) {
        this.current.state = state;
        await this.editor.show(state);
        this.edited(state);
    }

    /* -- Parts -- */

    build() {
        this.picks = h("div", {class: "picks", role: "group", "aria-label": "Recipes"});
        this.verdict = h("div", {class: "verdict", role: "status", id: "verdict"});
        this.command = commandLine();
        const side = h(
            "div", {class: "side"},
            h("section", {class: "card stack", "aria-label": "Recipe"}, this.picks, this.editor.element, h("hr"),
              this.verdict,
              h("div", {class: "row"}, h("button", {type: "button", onclick: () => this.saveDialog()}, "Save as YAML"),
                h("button",
                  {type: "button", onclick: () => this.command.text && copy(this.command.text, "Command line")},
                  "Copy command line"))));
        this.readings = h("div", {class: "two-tables"});
        this.timeSlider = slider({
            label: "time t",
            value: this.time,
            low: 1e-5,
            high: 1,
            scale: "log",
            hint: "Where the kernel is read",
            oninput: (t) => {
                this.time = Math.min(1, Math.max(1e-9, t));
                this.link.set(this.time, null);
                this.ask();
            }
        });
        this.timeSlider.element.classList.add("time-slider");
        this.buildPlots();
        this.element =
            h("div", {class: "split"}, side,
              h("div", {class: "stage"},
                h("section", {class: "card", "aria-label": "Readings"},
                  h("header", null, h("h2", null, "Readings"), h("div", {class: "end"}, this.timeSlider.element)),
                  this.readings),
                h("section", {class: "card", "aria-label": "Plots"},
                  h("header", null, h("h2", null, "Over time"), this.legend = h("div", {class: "legend end"})),
                  this.plotGrid),
                this.diffusion.element,
                h("section", {class: "card stack", "aria-label": "Command line"},
                  h("h2", null, "The same on the command line"), this.command.element)));
        this.dialog = this.buildDialog();
        this.element.append(this.dialog);
        this.draw = perFrame(() => this.drawAll());
    }

    buildPlots() {
        const t = {label: "t", name: "t", low: 0, high: 1}, logT = {label: "t", name: "t", log: true}, link = this.link;
        this.plots = {
            mean: new Plot({title: "Mean given x₀ = 1", unit: "in stationary deviations", x: t, y: {}, link}),
            variance: new Plot(
                {title: "Variance given x₀", unit: "in units of mass", x: logT, y: {log: true, decades: 9}, link}),
            sigma: new Plot({title: "Effective noise", unit: "σ of the data", x: logT, y: {log: true}, link}),
            distance: new Plot({
                title: "Distance from stationarity",
                unit: "nats per coordinate",
                x: t,
                y: {log: true, decades: 9},
                link
            }),
            spectrum: new Plot({
                title: "Eigenvalues of the drift",
                unit: "in units of β",
                x: {label: "real part", pad: true},
                y: {label: "imaginary part"},
                nearest: true
            }),
            lambda: new Plot(
                {title: "Error factors |λ|", unit: "dotted: first order", x: logT, y: {log: true, decades: 9}, link}),
            ellipse: new Plot({
                title: "Kernel in phase space",
                unit: "one and two deviations at t",
                x: {label: "x", low: -2.6, high: 2.6},
                y: {label: "m, in deviations"},
                square: true
            }),
            forward: new Plot(
                {title: "Forward paths", unit: "dot: start, at x = ±1", x: {label: "x", pad: true}, y: {label: "m"}}),
            reverse: new Plot({
                title: "Reverse paths",
                unit: "dot: end; data at x = ±1",
                x: {label: "x", pad: true},
                y: {label: "m"}
            }),
        };
        this.plotGrid = h("div", {class: "plots"}, Object.values(this.plots).map((plot) => plot.element));
    }

    drawPicks() {
        fill(
            this.picks,
            this.recipes.map(
                (recipe, i) =>
                    h("button", {
                        type: "button",
                        class: `pick c${i}`,
                        "aria-pressed": String(i === this.selected),
                        onclick: () => this.pick(i)
                    },
                      h("span", {class: "letter"}, LETTERS[i]),
                      h("span", {class: "cut"}, recipe.answer?.name || recipe.state.preset || "recipe"))),
            this.recipes.length < 3 &&
                h("button", {
                    type: "button",
                    class: "pick",
                    title: "Compare with another recipe",
                    "aria-label": "Add a recipe to compare",
                    onclick: () => this.add()
                },
                  this.recipes.length > 1 ? "+" : "+ compare"),
            this.recipes.length > 1 &&
                h("button", {
                    type: "button",
                    class: "quiet icon",
                    title: "Remove this recipe",
                    "aria-label": `Remove recipe ${LETTERS[this.selected]}`,
                    onclick: () => this.drop()
                },
                  "×"));
        this.picks.style.gridTemplateColumns =
            [...this.picks.children]
                .map(
                    (child) =>
                        (child.classList.contains("icon") || child.textContent === "+" ? "2.125rem" : "minmax(0, 1fr)"))
                .join(" ");
    }

    async pick(i) {
        this.selected = i;
        this.drawPicks();
        await this.editor.show(this.current.state);
        this.showVerdict();
    }

    async add() {
        const used = this.recipes.map((recipe) => recipe.state.preset),
              preset = ["vp", "cld", "told", "psld"].find((name) => !used.includes(name));
        this.recipes.push(
            {state: presetState(this.about.presets.find((row) => row.name === preset) || this.about.presets[0])});
        await this.pick(this.recipes.length - 1);
        this.edited(this.current.state);
        this.picks.children[this.selected].focus();
    }

    async drop() {
        this.recipes.splice(this.selected, 1);
        await this.pick(Math.max(0, this.selected - 1));
        this.edited(this.current.state);
    }

    /* -- Analysis -- */

    edited(state) {
        this.current.state = state;
        this.ask();
        this.diffusion.changed();
    }

    /* One request at a time; changes meanwhile are sent when it is answered. */
    ask() {
        if (this.asking) return void (this.again = true);
        this.asking = this.analyse().finally(() => {
            this.asking = null;
            if (this.again) {
                this.again = false;
                this.ask();
            }
        });
    }

    async analyse() {
        const asked = [...this.recipes], began = performance.now();
        try {
            const answer = await post("/api/recipe", {
                recipes: asked.map((recipe) => recipeOf(recipe.state)),
                at: [this.time],
                curves: POINTS,
                paths: PATHS
            });
            asked.forEach((recipe, i) => {
                recipe.error = answer.recipes[i].valid ? null : answer.recipes[i].error;
                if (answer.recipes[i].valid) recipe.answer = answer.recipes[i];
            });
        } catch (problem) {
            for (const recipe of asked) recipe.error = problem.message;
        }
        this.took = performance.now() - began;
        this.element.dataset.took = this.took.toFixed(1);
        this.draw();
    }

    drawAll() {
        this.drawPicks();
        this.showVerdict();
        this.drawReadings();
        this.drawPlots();
        this.diffusion.names();
        if (this.current.answer && !this.current.error) this.editor.follow(this.current.answer);
    }

    showVerdict() {
        const {answer, error} = this.current;
        this.verdict.className = `verdict ${error ? "bad" : ""}`;
        fill(
            this.verdict,
            error ? h("div", null, h("strong", null, "Not a valid process. "), error,
                      answer ? h("div", null, "The plots show it as it was before.") : "") :
                    answer &&
                    h("div", null, h("strong", null, "Valid. "), `${DAMPING[answer.damping] || answer.damping}; `,
                      answer.long_enough ? "T = 1 is long enough." : "T = 1 is too short: raise β."));
        if (!error && answer) this.command.text = answer.command;
    }

    /* Two tables: the process, and its kernel at one time. Each number carries all its digits. */
    drawReadings() {
        const shown = this.recipes.filter((recipe) => recipe.answer),
              k = Math.max(1, ...shown.map((recipe) => recipe.answer.k));
        const told = (value, ...shownAs) =>
            h("td", {
                class: "n",
                "data-value": value === null || value === undefined ? null : String(value),
                title: value === null || value === undefined ? null : String(value)
            },
              shownAs.length ? shownAs : number(value, 4));
        const row = (name, key, make) => h(
            "tr", {"data-row": key}, h("th", {scope: "row"}, name), shown.map((recipe) => make(recipe.answer, recipe)));
        const at = (answer) => answer.kernel[0] || {},
              entry = (matrix, i, j) => (matrix && i < matrix.length ? matrix[i][j] : null), names = VARIABLES(k);
        const process = [
            row("validity", "valid",
                (a, recipe) =>
                    h("td", {class: "n"},
                      h("span", {class: recipe.error ? "tag bad" : "tag good"}, recipe.error ? "not valid" : "valid"))),
            row("eigenvalues, in β", "eigenvalues",
                (a) => told(JSON.stringify(a.eigenvalues), a.eigenvalues.map((v) => h("div", null, complex(v))))),
            row("damping", "damping", (a) => told(a.damping, a.damping)),
            row("mixing at t = 1, nats", "distance", (a) => told(a.distance)),
            row("T = 1 is", "long_enough",
                (a) =>
                    h("td", {class: "n"},
                      h("span", {class: a.long_enough ? "tag good" : "tag bad"},
                        a.long_enough ? "long enough" : "too short"))),
            row("effective noise at t = 1", "sigma_max", (a) => told(a.sigma_max)),
            row("the network predicts", "predicts", (a) => told(a.predicts.join(" "), `ε of ${a.predicts.join(", ")}`)),
        ];
        const kernel = [
            row("effective noise σ", "sigma", (a) => told(at(a).sigma)),
            row("mixing, nats", "distance_t", (a) => told(at(a).distance)),
            ...names.map(
                (name, i) => row(`mean of ${name}, from x₀ = 1`, `mean${i}`, (a) => told(entry(at(a).mean, i, 0)))),
            ...names.flatMap(
                (name, i) => names.slice(0, i + 1).map(
                    (other, j) =>
                        row(i === j ? `variance of ${name}` : `covariance of ${other}, ${name}`, `cov${i}${j}`,
                            (a) => told(entry(at(a).cov, i, j))))),
            ...names.map(
                (name, i) =>
                    row(`error factor λ${"₁₂₃₄₅₆₇₈"[i]}`, `lambda${i}`, (a) => told(at(a).lambda?.[i] ?? null))),
        ];
        const letters = shown.map(
            (recipe) =>
                h("th", {class: "n", scope: "col"},
                  h("span", {class: `letter c${this.recipes.indexOf(recipe)}`, title: recipe.answer.name},
                    LETTERS[this.recipes.indexOf(recipe)])));
        const table = (title, rows) =>
            h("div", {class: "scroll"},
              h("table", {class: "readings"},
                h("thead", null,
                  h("tr", null, h("th", {scope: "col"}, title), letters.map((letter) => letter.cloneNode(true)))),
                h("tbody", null, rows)));
        fill(
            this.readings,
            shown.length ? [table("The process", process), table(`Its kernel at t = ${number(this.time, 4)}`, kernel)] :
                           h("p", {class: "problem-text"}, this.current.error || ""));
    }

    drawPlots() {
        const shown = this.recipes.map((recipe, c) => ({...recipe, c})).filter((recipe) => recipe.answer?.curves),
              plots = this.plots;
        const curves = (make) => shown.flatMap(({answer, c}) => make(answer.curves, answer, c));
        const each = (values, c, t, scaled, style) => values.map((y, i) => ({
                                                                     x: t,
                                                                     y: scaled ? y.map((v) => scaled(v, i)) : y,
                                                                     c,
                                                                     style: style || STYLES[i],
                                                                     label: VARIABLES(values.length)[i]
                                                                 }));
        plots.mean.set({
            curves: curves(
                (q, a, c) => each(q.mean.map((row) => row[0]), c, q.t, (v, i) => v / Math.sqrt(i ? a.mass[i - 1] : 1)))
        });
        plots.variance.set({
            curves:
                curves((q, a, c) => each(q.cov.map((row, i) => row[i]), c, q.t, (v, i) => v / (i ? a.mass[i - 1] : 1)))
        });
        plots.sigma.set({curves: curves((q, a, c) => [{x: q.t, y: q.sigma, c, label: a.name}])});
        plots.distance.set({
            curves: curves((q, a, c) => [{x: q.t, y: q.distance, c, label: a.name}]),
            limits: [{y: 5e-3, label: "enough"}]
        });
        plots.lambda.set({
            curves: curves(
                (q, a, c) =>
                    [...each(q.lambda, c, q.t, Math.abs)
                         .map((curve) => ({...curve, label: `second order ${curve.label}`})),
                     ...each(q.lambda_first_order, c, q.t, Math.abs, "dotted")
                         .map((curve) => ({...curve, label: `first order ${curve.label}`}))])
        });
        plots.spectrum.set({
            marks: shown.map(({answer, c}) => ({
                                 x: answer.eigenvalues.map((v) => v[0]),
                                 y: answer.eigenvalues.map((v) => v[1]),
                                 c,
                                 size: 5,
                                 label: answer.name,
                                 tell: (i) => [answer.name, complex(answer.eigenvalues[i])]
                             }))
        });
        this.drawPaths(shown);
        this.drawEllipses();
        const k = Math.max(...shown.map(({answer}) => answer.k));
        fill(
            this.legend,
            shown.map(({answer, c}) => h("span", {class: `c${c}`}, h("i", {class: "swatch"}), answer.name)),
            k > 1 &&
                VARIABLES(k).slice(0, 4).map(
                    (name, i) => h("span", null, h("i", {class: `swatch ${STYLES[i]}`}), name)));
    }

    /* The kernel of x_0 = 1 at the time that is read: ellipses of (x, m); without m an interval. Follows the cursor. */
    drawEllipses() {
        const curves = [], marks = [], t = Math.max(1e-5, this.link.value ?? this.time);
        this.recipes.forEach(({answer}, c) => {
            if (!answer?.curves) return;
            const q = answer.curves, d = answer.k > 1 ? Math.sqrt(answer.mass[0]) : 1,
                  at = (y) => Plot.at({x: q.t, y}, t) ?? 0;
            const l00 = Math.sqrt(Math.max(0, at(q.cov[0][0]))),
                  mean = [at(q.mean[0][0]), answer.k > 1 ? at(q.mean[1][0]) / d : 0];
            const l10 = answer.k > 1 ? at(q.cov[1][0]) / d / (l00 || 1) : 0,
                  l11 = answer.k > 1 ? Math.sqrt(Math.max(0, at(q.cov[1][1]) / d ** 2 - l10 ** 2)) : 0;
            for (const radius of [1, 2]) {
                const x = [], y = [];
                for (let i = 0; i <= 72; i++) {
                    const u = radius * Math.cos((i * Math.PI) / 36), v = radius * Math.sin((i * Math.PI) / 36);
                    x.push(mean[0] + l00 * u), y.push(mean[1] + l10 * u + l11 * v);
                }
                curves.push(
                    {x, y, c, silent: true, ordered: false, style: radius > 1 ? "dotted" : "", label: answer.name});
            }
            marks.push({x: [mean[0]], y: [mean[1]], c});
        });
        this.plots.ellipse.setAxes(null, {low: -2.6, high: 2.6});
        this.plots.ellipse.set({curves, marks});
    }

    /* In phase space; x against t if no recipe has auxiliary variables. */
    drawPaths(shown) {
        const phase = shown.some(({answer}) => answer.k > 1),
              drawn = shown.filter(({answer}) => answer.paths && (!phase || answer.k > 1));
        for (const key of ["forward", "reverse"]) {
            const curves = [], marks = [];
            for (const {answer, c} of drawn)
                for (const path of answer.paths[key].slice(0, shown.length > 1 ? 1 : PATHS)) {
                    const x = phase ? path.map((z) => z[0]) : answer.paths.t, y = path.map((z) => z[phase ? 1 : 0]);
                    curves.push({x, y, c, silent: true, ordered: false, label: answer.name});
                    marks.push({x: [x[0]], y: [y[0]], c});
                }
            this.plots[key].setAxes({label: phase ? "x" : "t"}, {label: phase ? "m" : "x"});
            this.plots[key].set({curves, marks});
        }
    }

    /* -- Saving -- */

    buildDialog() {
        const path = h("input", {required: true, maxlength: "200", spellcheck: "false"}),
              problem = h("p", {class: "problem-text", role: "alert"}),
              yaml = h("pre", {class: "small", tabindex: "0", "aria-label": "The file"});
        const replace =
            h("button", {type: "button", class: "danger", hidden: true, onclick: () => send(true)}, "Replace it");
        const send = async (again) => {
            try {
                const saved = await post("/api/save", {
                    path: path.value,
                    recipe: this.current.answer ? recipeOf(this.current.state) : "",
                    ...(again ? {replace: true} : {})
                });
                dialog.close();
                note(`Saved ${saved.path}`);
                await this.listFiles();
                await this.editor.fillSources();
            } catch (refused) {
                problem.textContent = refused.message;
                replace.hidden = refused.status !== 409;
            }
        };
        const form =
            h("form", {class: "stack", onsubmit: (event) => (event.preventDefault(), send(false))},
              h("h2", null, "Save the recipe"),
              h("label", {class: "field"}, h("span", null, "Name in the folder"), path), yaml, problem,
              h("div", {class: "row end"},
                h("button", {type: "button", class: "quiet", onclick: () => dialog.close()}, "Cancel"),
                h("button", {
                    type: "button",
                    onclick: () => save(new Blob([this.current.answer.yaml], {type: "text/yaml"}), path.value)
                },
                  "Download"),
                replace, h("button", {type: "submit", class: "main"}, "Save")));
        const dialog = h("dialog", {"aria-label": "Save the recipe"}, form);
        dialog.prepare = () => {
            path.value = `${this.current.answer.name}.yaml`;
            yaml.textContent = this.current.answer.yaml;
            problem.textContent = "";
            replace.hidden = true;
        };
        return dialog;
    }

    saveDialog() {
        if (this.current.error || !this.current.answer) return note("A recipe can be saved when it is valid.", true);
        this.dialog.prepare();
        this.dialog.showModal();
    }
}

const DAMPING = {
    over: "overdamped",
    overdamped: "overdamped",
    critical: "critically damped",
    under: "underdamped",
    underdamped: "underdamped"
};

function complex([re, im]) {
    return im === 0 ? number(re, 4) : `${number(re, 4)} ${im < 0 ? "−" : "+"} ${number(Math.abs(im), 4)}i`;
}
