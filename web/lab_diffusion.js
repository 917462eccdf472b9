/* Data diffusing to noise and back under each recipe, animated over t. */
import {files, Job} from "./api.js";
import {commandLine} from "./command.js";
import {choice, numberField, options, segmented} from "./controls.js";
import {fill, h, note, number, perFrame} from "./dom.js";
import {colour, Plot} from "./plot.js";

const FRAMES = 48, SAMPLES = 800, REACH = 2.4, SECONDS = 4, SPACING = 0.07; /* between points of a stroke */

/* ---- Data -------------------------------------------------------------------------------------------------------- */

const SHAPES = {
    spiral: [
        "Spiral",
        () => Array.from(
            {length: 240},
            (_, i) => {
                const u = Math.sqrt((i + 0.5) / 240), a = 3.2 * Math.PI * u;
                return [1.6 * u * Math.cos(a), 1.6 * u * Math.sin(a)];
            })
    ],
    moons: [
        "Two moons",
        () => Array.from(
            {length: 240},
            (_, i) => {
                const a = (Math.PI * (i >> 1)) / 119;
                return i % 2 ? [1.1 * Math.cos(a) - 0.55, 1.1 * Math.sin(a) - 0.28] :
                               [0.55 - 1.1 * Math.cos(a), 0.28 - 1.1 * Math.sin(a)];
            })
    ],
};

export class Diffusion {
    constructor(about, recipes) {
        this.about = about;
        this.recipes = recipes;
        this.runs = [];
        this.jobs = [];
        this.points = [];
        this.data = "shape:moons";
        this.u = 0;
        this.phase = "x";
        this.visible = false;
        this.shown = false;
        this.build();
        this.redraw = perFrame(() => this.draw());
        new IntersectionObserver((entries) => {
            this.visible = entries.some((entry) => entry.isIntersecting);
            if (this.visible && this.stale) this.run();
        }).observe(this.element);
        this.stale = true;
    }

    build() {
        const samplers = this.about.samplers.filter((row) => !row.consistency).map((row) => [row.name, row.name]);
        this.source = choice("Data", [["shape:moons", "Two moons"]], this.data, (value) => this.choose(value));
        this.sampler = choice("Sampler", samplers, "sscs", () => this.samplerChosen());
        this.nfe = numberField("Evaluations", 50, {min: 2, max: 1000, oninput: () => this.changed()});
        this.seed = numberField("Seed", 0, {min: 0, oninput: () => this.changed()});
        this.plane = segmented("What is shown", [["x", "Data plane"], ["m", "Phase space"]], "x", (value) => {
            this.phase = value;
            this.draw();
        }, false);
        this.pad = new Pad((points) => {
            this.points = points;
            this.changed();
        });
        this.pad.element.hidden = true;
        this.playing = null;
        this.button = h("button", {type: "button", onclick: () => (this.playing ? this.stop() : this.play())}, "Play");
        this.range = h("input", {
            type: "range",
            min: "0",
            max: "1000",
            value: "0",
            "aria-label": "Time of the animation",
            oninput: () => {
                this.stop();
                this.u = this.range.value / 1000;
                this.redraw();
            }
        });
        this.clock = h("output", null, "t = 0");
        this.status = h("p", {class: "status", role: "status"});
        this.clouds = h("div", {class: "clouds"});
        this.command = commandLine();
        this.element =
            h("section", {class: "card stack diffusion", "aria-label": "Diffusion"},
              h("header", null, h("h2", null, "Data to noise, and back"), h("div", {class: "end"}, this.plane.element)),
              h("div", {class: "controls-row"}, this.source.element, this.sampler.element, this.nfe.element,
                this.seed.element),
              this.pad.element, h("div", {class: "scrub"}, this.button, this.range, this.clock), this.clouds,
              this.status, this.command.element);
    }

    async show() {
        this.shown = true;
        let exact = [];
        try {
            exact = (await files("model"))
                        .filter((file) => /\.ya?ml$/.test(file.path))
                        .map((file) => [`model:${file.path}`, file.path.replace(/^shipped:/, "")]);
        } catch (problem) {
            note(problem.message, true);
        }
        options(
            this.source.select,
            [
                {
                    group: "Shapes",
                    rows: [
                        ...Object.entries(SHAPES).map(([name, [text]]) => [`shape:${name}`, text]),
                        ["own", "Draw your own"]
                    ]
                },
                ...(exact.length ? [{group: "Exact mixtures", rows: exact}] : [])
            ],
            this.data);
    }

    hide() {
        this.shown = false;
        this.stop();
    }

    choose(value) {
        this.data = value;
        this.pad.element.hidden = value !== "own";
        if (value === "own") this.pad.draw();
        this.changed();
    }

    samplerChosen() {
        const row = this.about.samplers.find((sampler) => sampler.name === this.sampler.value);
        this.nfe.input.disabled = row.adaptive;
        this.nfe.input.title = row.adaptive ? "This sampler chooses its steps itself" : "";
        this.changed();
    }

    /* ---- Computing ----------------------------------------------------------------------------------------------- */

    /* After a short pause without changes, and only while the view is visible. */
    changed() {
        this.stale = true;
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.visible && this.shown && this.run(), 350);
    }

    dataOf() {
        if (this.data.startsWith("model:")) return {model: this.data.slice(6)};
        const points = this.data === "own" ? this.points : SHAPES[this.data.slice(6)][1]();
        return points.length ? {points, scale: 0.05} : null;
    }

    async run() {
        this.stale = false;
        for (const job of this.jobs) job.cancel();
        this.jobs = [];
        const data = this.dataOf(), ask = (this.asked = Symbol("ask")),
              recipes = this.recipes().filter((recipe) => recipe.valid);
        if (!data)
            return void (
                this.status.textContent =
                    "Draw some points with the mouse, or with arrow keys and space: they are the data.");
        if (!recipes.length) return;
        const adaptive = this.about.samplers.find((row) => row.name === this.sampler.value)?.adaptive,
              nfe = this.nfe.value;
        this.status.className = "status";
        this.status.textContent = "Computing …";
        const began = [];
        try {
            for (const recipe of recipes) {
                const job = new Job({
                    kind: "animate",
                    ...data,
                    process: recipe.recipe,
                    sampler: this.sampler.value,
                    ...(adaptive || nfe === null ? {} : {nfe}),
                    n: SAMPLES,
                    frames: FRAMES,
                    seed: this.seed.value || 0,
                    preview: false
                });
                began.push(job);
                this.jobs.push(job);
            }
            const runs = await Promise.all(recipes.map((recipe, i) => this.collect(began[i], recipe)));
            for (const job of began) job.free();
            if (ask !== this.asked || runs.some((run) => !run)) return;
            this.data2 = data;
            this.runs = runs;
            this.makeClouds();
            this.status.textContent = "";
            this.command.text = runs[0].command;
            this.draw();
        } catch (problem) {
            for (const job of began) job.cancel();
            if (ask !== this.asked) return;
            this.status.className = "status problem-text";
            this.status.textContent = problem.message;
        }
    }

    async collect(job, recipe) {
        const state = await job.finished;
        if (state.state !== "done") return null;
        const [truth, forward, reverse] =
            await Promise.all(["truth", "forward", "reverse"].map((name) => job.array(name)));
        return {...recipe, ...state.result, seconds: state.seconds, command: state.command, truth, forward, reverse};
    }

    /* ---- Showing ------------------------------------------------------------------------------------------------- */

    makeClouds() {
        if (this.clouds.childElementCount !== this.runs.length) {
            this.pairs =
                this.runs.map(() => ["forward", "reverse"].map((name) => new Plot({
                                                                   title: name === "forward" ? "Forward" : "Reverse",
                                                                   height: null,
                                                                   ratio: 0.92,
                                                                   square: true,
                                                                   x: {low: -REACH, high: REACH},
                                                                   y: {low: -REACH, high: REACH}
                                                               })));
            fill(
                this.clouds,
                this.pairs.map(
                    (pair) =>
                        h("div", {class: "cloud-pair"}, h("div", {class: "row cloud-head"}),
                          pair.map((plot) => plot.element), h("dl", {class: "figures"}))));
        }
        this.names();
        [...this.clouds.children].forEach((host, i) => {
            const run = this.runs[i],
                  figure = (name, value, exact) =>
                      h("div", null, h("dt", null, name), h("dd", {"data-value": String(exact ?? value)}, value));
            fill(
                host.lastChild, figure("distance from truth", number(run.distance), run.distance),
                figure("of two exact sets", number(run.floor), run.floor),
                figure("evaluations", String(run.nfe), run.nfe));
        });
    }

    names() {
        const recipes = this.recipes();
        [...this.clouds.children].forEach((host, i) => {
            const run = this.runs[i];
            if (run)
                fill(
                    host.firstChild, h("span", {class: `letter c${run.c}`}, run.letter),
                    recipes[run.c]?.name || run.name);
        });
    }

    /* The state at time t between the two frames about it. `times` rise or fall. */
    static between(times, array, t) {
        const falling = times[0] > times[times.length - 1], count = times.length;
        let i = 0;
        while (i < count - 2 && (falling ? times[i + 1] > t : times[i + 1] < t)) i++;
        const span = times[i + 1] - times[i], w = span ? Math.max(0, Math.min(1, (t - times[i]) / span)) : 0;
        const size = array.shape[1] * array.shape[2], a = i * size, b = (i + 1) * size, z = new Float32Array(size);
        for (let j = 0; j < size; j++) z[j] = array.data[a + j] * (1 - w) + array.data[b + j] * w;
        return z;
    }

    /* The slider is uniform in the frames of the server, which are denser near the data. */
    timeAt(u, times) {
        const place = u * (times.length - 1), i = Math.min(times.length - 2, Math.floor(place));
        return times[i] + (place - i) * (times[i + 1] - times[i]);
    }

    draw() {
        if (!this.runs.length) return;
        this.range.value = Math.round(this.u * 1000);
        this.range.style.setProperty("--done", `${100 * this.u}%`);
        const t = this.timeAt(this.u, this.runs[0].times);
        this.clock.textContent = `t = ${number(t, 3)}`;
        this.range.setAttribute("aria-valuetext", this.clock.textContent);
        this.runs.forEach((run, i) => this.pairs[i].forEach((plot, which) => {
            const array = which ? run.reverse : run.forward, times = which ? run.reverse_times : run.times,
                  z = Diffusion.between(times, array, t);
            const width = array.shape[2], phase = this.phase === "m" && width > 2, n = array.shape[1],
                  x = new Float32Array(n), y = new Float32Array(n);
            for (let j = 0; j < n; j++) (x[j] = z[j * width]), (y[j] = z[j * width + (phase ? 2 : 1)]);
            const truth = phase ? [] : [this.ghost(run.truth)];
            plot.setAxes(
                {label: "x₁", low: -REACH, high: REACH}, {label: phase ? "m₁" : "x₂", low: -REACH, high: REACH});
            plot.set({points: [...truth, {x, y, c: run.c, size: 2.6, alpha: 0.65}]});
        }));
    }

    ghost(truth) {
        const n = truth.shape[0], width = truth.data.length / n, x = new Float32Array(n), y = new Float32Array(n);
        for (let j = 0; j < n; j++) (x[j] = truth.data[j * width]), (y[j] = truth.data[j * width + 1]);
        return {x, y, colour: "faint", size: 2, alpha: 0.25};
    }

    /* To noise and back, over and over. */
    play() {
        if (!this.runs.length) return;
        let direction = this.u >= 1 ? -1 : 1, last = performance.now();
        const tick = (now) => {
            this.u += (direction * (now - last)) / (1000 * SECONDS);
            last = now;
            if (this.u >= 1) (this.u = 1), (direction = -1);
            if (this.u <= 0) (this.u = 0), (direction = 1);
            this.draw();
            this.playing = requestAnimationFrame(tick);
        };
        this.playing = requestAnimationFrame(tick);
        this.button.textContent = "Pause";
    }

    stop() {
        if (this.playing) cancelAnimationFrame(this.playing);
        this.playing = null;
        this.button.textContent = "Play";
    }
}

/* ---- A pad to put points on -------------------------------------------------------------------------------------- */

class Pad {
    constructor(onchange) {
        this.onchange = onchange;
        this.points = [];
        this.at = [0, 0];
        this.canvas = h("canvas", {
            tabindex: "0",
            role: "application",
            class: "drawing",
            "aria-label":
                "Pad for data points. Arrow keys move the cross, space puts a point, Delete takes the last one away."
        });
        this.count = h("span", {class: "small", role: "status"});
        this.element =
            h("div", {class: "pad"}, this.canvas,
              h("div", {class: "stack"},
                h("p", {class: "small"},
                  "Draw with the mouse or a finger. Each point becomes a small Gaussian of the data."),
                this.count, h("button", {type: "button", onclick: () => this.clear()}, "Clear")));
        this.canvas.addEventListener("pointerdown", (event) => {
            this.canvas.setPointerCapture(event.pointerId);
            this.last = null;
            this.put(event);
        });
        this.canvas.addEventListener("pointermove", (event) => event.buttons && this.put(event));
        this.canvas.addEventListener("pointerup", () => this.onchange(this.points));
        this.canvas.addEventListener("keydown", (event) => this.key(event));
        new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    put(event) {
        const box = this.canvas.getBoundingClientRect();
        const x = (((event.clientX - box.left) / box.width) * 2 - 1) * REACH,
              y = (1 - ((event.clientY - box.top) / box.height) * 2) * REACH;
        const from = this.last, steps = from ? Math.floor(Math.hypot(x - from[0], y - from[1]) / SPACING) : 0;
        if (!from) return this.add([x, y]);
        for (let i = 1; i <= steps; i++)
            this.add([from[0] + ((x - from[0]) * i) / steps, from[1] + ((y - from[1]) * i) / steps]);
    }

    add(point) {
        if (this.points.length >= 2000) return;
        this.last = point.map((v) => Number(v.toFixed(3)));
        this.points.push(this.last);
        this.draw();
    }

    key(event) {
        const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
        if (move)
            this.at =
                this.at.map((v, i) => Math.max(-REACH, Math.min(REACH, v + move[i] * (event.shiftKey ? 0.4 : 0.1))));
        else if (event.key === " ")
            this.add(this.at), this.onchange(this.points);
        else if (event.key === "Delete" || event.key === "Backspace")
            this.points.pop(), this.onchange(this.points);
        else
            return;
        event.preventDefault();
        this.draw();
    }

    clear() {
        this.points = [];
        this.onchange(this.points);
        this.draw();
    }

    draw() {
        const size = this.canvas.clientWidth, ratio = window.devicePixelRatio || 1;
        if (!size) return;
        this.canvas.width = this.canvas.height = size * ratio;
        const context = this.canvas.getContext("2d"), to = (v) => ((v / REACH + 1) / 2) * size;
        context.scale(ratio, ratio);
        context.strokeStyle = colour("rule");
        context.beginPath();
        context.moveTo(size / 2, 0), context.lineTo(size / 2, size), context.moveTo(0, size / 2),
            context.lineTo(size, size / 2);
        context.stroke();
        context.fillStyle = colour("accent");
        for (const [x, y] of this.points)
            context.beginPath(), context.arc(to(x), size - to(y), 2.5, 0, 7), context.fill();
        context.strokeStyle = colour("s1");
        const [cx, cy] = [to(this.at[0]), size - to(this.at[1])];
        context.beginPath();
        context.moveTo(cx - 6, cy), context.lineTo(cx + 6, cy), context.moveTo(cx, cy - 6), context.lineTo(cx, cy + 6);
        if (document.activeElement === this.canvas) context.stroke();
        this.count.textContent = `${this.points.length} points`;
    }
}
