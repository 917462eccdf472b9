/* Paint: parts of a picture made unknown with a brush and completed, or a degraded picture restored. */
import {array as fetchArray, fetchBlob, files, Job, query, remove, upload} from "./api.js";
import {commandLine} from "./command.js";
import {choice, empty, numberField, options, progressLine, segmented, slider} from "./controls.js";
import {duration, fill, h, note, whole} from "./dom.js";
import {ClassChoice, ModelChoice, SamplerChoice} from "./models.js";
import {openSheet, paintItem, Tiles} from "./pictures.js";
import {colour} from "./plot.js";

const TASKS = {
    "inpaint": ["Fill in", "Paint over what is unknown: it is drawn anew so that it fits the rest."],
    "super-resolution": ["Enlarge", "From the means of blocks of pixels: what a small picture could have been."],
    "deblur": ["Sharpen", "From a picture blurred by a Gaussian."],
    "colorize": ["Colour", "From the brightness alone."],
    "denoise": ["Clean", "From a picture with noise."],
};

export async function create(about) {
    const view = new Paint(about);
    await view.list();
    return view;
}

class Paint {
    constructor(about) {
        this.about = about;
        this.task = "inpaint";
        this.model = new ModelChoice((model) => this.modelChosen(model));
        this.sampler = new SamplerChoice(about);
        this.classes = new ClassChoice();
        this.easel = new Easel((file) => this.take(file), () => this.painted());
        this.tiles = new Tiles("Completions", (i) => this.pick(i));
        this.progress = progressLine();
        this.command = commandLine();
        this.build();
    }

    build() {
        this.names = Object.keys(TASKS).filter((name) => this.about.tasks.some((task) => task.name === name));
        this.tasks = segmented(
            "What to do", this.names.map((name) => [name, TASKS[name][0]]), "inpaint", (task) => this.choose(task));
        this.taskAbout = h("p", {class: "small"});
        this.count = numberField("Completions", 4, {min: 1, max: 64});
        this.methods = choice("Method", [], "");
        this.repeats = numberField("Repeats", null, {
            min: 1,
            max: 100,
            placeholder: "10",
            hint: "How often every step is repeated, so that the unknown part fits the rest"
        });
        this.factor = choice("Enlarge by", [["2", "2"], ["4", "4"], ["7", "7"], ["8", "8"]], "4");
        this.blur = slider({label: "blur, pixels", value: 2, low: 0.5, high: 8});
        this.noise = slider({
            label: "noise",
            value: 0.05,
            low: 0,
            high: 1,
            scale: "power",
            hint: "Deviation of the noise in the measurement; pixels are −1 to 1"
        });
        this.given = segmented(
            "What the picture is", [["whole", "degrade it first"], ["degraded", "it is degraded"]], "whole", () => {});
        this.button = h("button", {type: "submit", class: "main", form: "paint-form"}, "Complete");
        this.cancel = h("button", {type: "button", disabled: true, onclick: () => this.job?.cancel()}, "Cancel");
        this.file = h("input", {
            type: "file",
            accept: "image/png,image/jpeg,image/webp",
            class: "unseen",
            id: "paint-file",
            onchange: () => this.file.files[0] && this.take(this.file.files[0])
        });
        this.pictures = choice("Picture of the folder", [["", "choose …"]], "", (path) => path && this.takePath(path));
        this.takeButton = h("button", {type: "button", onclick: () => this.takeSample()}, "Take a sample");
        this.brush = slider(
            {label: "brush", value: 5, low: 1, high: 40, whole: true, oninput: (size) => (this.easel.size = size)});
        this.tool = segmented(
            "Tool", [["paint", "Brush"], ["erase", "Eraser"]], "paint", (tool) => (this.easel.erase = tool === "erase"),
            false);
        const act = (text, work) => h("button", {type: "button", class: "quiet", onclick: work}, text);
        this.brushes =
            h("div", {class: "stack"}, this.brush.element,
              h("div", {class: "row"}, this.tool.element, act("Lower half", () => this.easel.half()),
                act("Invert", () => this.easel.invert()), act("Clear", () => this.easel.clear())));
        this.results =
            h("div", {class: "screen"},
              empty(
                  "No completions yet",
                  "Drop a picture on the left, or take a sample. Then paint over what is to be drawn anew."));
        this.downloads = h("div", {class: "row"});
        this.chosen = h("div", {class: "row"});
        this.source = h("p", {class: "small", role: "status"});
        const side =
            h("form", {class: "side", id: "paint-form", onsubmit: (event) => (event.preventDefault(), this.run())},
              h("section", {class: "card stack", "aria-label": "What to do"}, this.tasks.element, this.taskAbout,
                this.model.element, h("hr"), this.given.element, this.factor.element, this.blur.element,
                this.noise.element, this.count.element, this.sampler.element, this.classes.element,
                h("details", null, h("summary", null, "More"),
                  h("div", {class: "stack"}, h("div", {class: "two"}, this.methods.element, this.repeats.element),
                    this.sampler.more))));
        const stage =
            h("section", {class: "card", "aria-label": "Picture and completions"},
              h("div", {class: "paint-stage"}, this.pictureSide(), this.completionSide()));
        this.element = h("div", {class: "split stage-first"}, side, h("div", {class: "stage"}, stage));
        this.choose("inpaint");
    }

    pictureSide() {
        const open = h("label", {class: "button", "for": "paint-file"}, "Open a picture");
        return h(
            "div", {class: "stack"},
            h("header", {class: "row"}, h("h2", null, "Picture"), h("span", {class: "grow"}), this.source),
            this.easel.element, this.brushes,
            h("div", {class: "row"}, h("div", {class: "grow"}, this.button), this.cancel), h("hr"),
            h("div", {class: "row"}, open, this.file, this.takeButton), this.pictures.element);
    }

    completionSide() {
        return h(
            "div", {class: "stack"},
            h("header", {class: "row"}, h("h2", null, "Completions"), h("span", {class: "grow"}), this.downloads),
            this.progress.element, this.results, this.chosen, this.command.element);
    }

    async list() {
        await this.classes.list();
        this.model.accepts = (file) => !/\.ya?ml$/.test(file.path);
        await this.model.list();
    }

    async show(values) {
        try {
            await this.model.list();
            const pictures = await files("picture");
            options(
                this.pictures.select,
                [
                    ["", pictures.length ? "choose …" : "there is none"],
                    ...pictures.map((file) => [file.path, file.path])
                ],
                "");
            if (values.get("model")) await this.model.set(values.get("model"));
            if (values.get("thing")) await this.useThing(values.get("thing"), "a sample");
        } catch (problem) {
            note(problem.message, true);
        }
    }

    async modelChosen(model) {
        this.sampler.offer(model);
        this.described = model;
        if (!model) return;
        if (model.shape.length !== 3) return void (this.model.about.textContent = "Paint needs a model of pictures.");
        this.brush.value = Math.max(1, Math.round(model.shape[2] / 6));
        this.easel.size = this.brush.value;
        this.easel.resize(model.shape);
        const colours = this.tasks.buttons[this.names.indexOf("colorize")];
        if (colours) {
            colours.disabled = model.shape[0] !== 3;
            colours.title = colours.disabled ? "This model draws grey pictures" : "";
            if (colours.disabled && this.task === "colorize") this.tasks.value = "inpaint", this.choose("inpaint");
        }
        options(
            this.factor.select,
            [2, 3, 4, 7, 8, 14, 16]
                .filter((f) => model.shape[1] % f === 0 && model.shape[2] % f === 0)
                .map((f) => [String(f), String(f)]),
            "4");
        await this.classes.of(model);
    }

    choose(task) {
        this.task = task;
        const inpaint = task === "inpaint", row = this.about.tasks.find((other) => other.name === task) || {};
        this.taskAbout.textContent = TASKS[task][1];
        this.brushes.hidden = !inpaint;
        this.easel.masking = inpaint;
        this.easel.draw();
        this.given.element.hidden = inpaint;
        this.factor.element.hidden = !row.uses_factor;
        this.blur.element.hidden = !row.uses_blur;
        this.noise.element.hidden = inpaint;
        this.repeats.element.hidden = !inpaint;
        if (task === "denoise")
            this.noise.value = 0.7;
        else if (!inpaint)
            this.noise.value = 0.05;
        options(
            this.methods.select,
            inpaint ? [["", "resample"], ["replace", "replace"], ["authors", "authors"]] :
                      this.about.methods.map((method) => [method.name, method.name]),
            "");
        this.button.textContent = inpaint ? "Complete" : TASKS[task][0];
    }

    painted() {
        if (this.task === "inpaint" && this.thing)
            this.progress.say(this.easel.hasMask ? "" : "Paint over what is to be drawn anew.");
    }

    /* -- Where the picture comes from -- */

    async take(file) {
        try {
            if (!/^image\/(png|jpeg|webp)$/.test(file.type))
                throw new Error(`${file.name}: expected a PNG, JPEG or WebP picture`);
            const stored = await upload(file, file.name);
            if (this.uploaded) remove(`/api/uploads/${this.uploaded}`).catch(() => {});
            this.uploaded = stored.id;
            this.setThing(stored.thing, file.name);
            await this.easel.showBlob(file);
        } catch (problem) {
            note(problem.message, true);
        }
    }

    async takePath(path) {
        try {
            await this.easel.showBlob(await fetchBlob(`/api/file?${query({path})}`));
            this.setThing(path, path);
        } catch (problem) {
            note(problem.message, true);
        }
    }

    async takeSample() {
        this.takeButton.disabled = true;
        const seed =
            this.sampleSeed === undefined ? (this.sampleSeed = this.sampler.seed.value || 0) : ++this.sampleSeed;
        try {
            const job = new Job({kind: "draw", model: this.model.path, n: 1, seed}, {
                progress: (progress) => this.progress.show(progress),
                preview: (preview) => this.easel.showPreview(preview)
            });
            const state = await job.finished;
            if (state.state !== "done") return;
            this.easel.showArray(await job.array("samples"));
            this.setThing(job.thing("samples", 0), `sample of seed ${seed}`);
            this.progress.say("");
        } catch (problem) {
            this.progress.say(problem.message, true);
        } finally {
            this.takeButton.disabled = false;
        }
    }

    /* A picture that a job of this server made: job:ID/ARRAY/I. */
    async useThing(thing, name) {
        const [, id, array, index] = /^job:([^/]+)\/([^/]+)\/(\d+)$/.exec(thing) || [];
        if (!id) return;
        this.easel.showArray(await fetchArray(`/api/jobs/${id}/${array}.npy?${query({first: index, count: 1})}`));
        this.setThing(thing, name);
    }

    setThing(thing, name) {
        this.thing = thing;
        this.source.textContent = name;
        this.painted();
    }

    /* -- Work -- */

    async body() {
        const inpaint = this.task === "inpaint", body = {
            kind: inpaint ? "inpaint" : "restore",
            model: this.model.path,
            image: this.thing,
            fit: true,
            n: this.count.value || 4,
            ...this.sampler.values(),
            ...this.classes.values()
        };
        if (this.methods.value && this.methods.select.selectedIndex > 0) body.method = this.methods.value;
        if (inpaint) {
            if (this.maskId) remove(`/api/uploads/${this.maskId}`).catch(() => {});
            const stored = await upload(await this.easel.maskBlob(), "mask.png");
            body.mask = stored.thing;
            this.maskId = stored.id;
            if (this.repeats.value !== null && !body.method) body.repeats = this.repeats.value;
            return body;
        }
        const row = this.about.tasks.find((task) => task.name === this.task);
        body.task = this.task;
        if (row.uses_factor) body.factor = Number(this.factor.value);
        if (row.uses_blur) body.blur = this.blur.value;
        if (this.noise.value > 0) body.noise = this.noise.value;
        if (this.given.value === "degraded") body.degraded = true;
        return body;
    }

    async run() {
        if (!this.thing) return this.progress.say("First drop a picture on the easel, or take a sample.", true);
        if (this.task === "inpaint" && !this.easel.hasMask)
            return this.progress.say("Paint over what is to be drawn anew: nothing is unknown yet.", true);
        this.job?.cancel();
        const n = this.count.value || 4, token = (this.token = Symbol("run"));
        fill(this.downloads);
        fill(this.chosen);
        this.tiles.first = 0;
        this.tiles.make(n, this.described.shape, (i) => `Completion ${i + 1}`);
        this.tiles.clear();
        fill(this.results, this.tiles.element);
        this.cancel.disabled = false;
        this.progress.say("Beginning …");
        try {
            const body = await this.body(),
                  job = (this.job = new Job(body, {
                             state: (state) => (this.command.text = state.command),
                             progress: (progress) => token === this.token && this.progress.show(progress),
                             preview: (preview) => token === this.token && this.tiles.preview(preview).catch(() => {}),
                         }));
            const state = await job.finished;
            if (token === this.token) await this.finish(job, state);
        } catch (problem) {
            if (token === this.token) this.progress.say(problem.message, true);
        } finally {
            if (token === this.token) this.cancel.disabled = true;
        }
    }

    async finish(job, state) {
        if (!state.arrays?.samples) return this.progress.say("Cancelled.");
        this.array = await job.array("samples");
        this.tiles.show(this.array);
        const nfe = state.result?.nfe;
        this.progress.say(`${whole(this.array.shape[0])} completions${nfe ? `, ${nfe} evaluations each` : ""}, ${
            duration(state.seconds)}`);
        const pictures = ["original", "corrupted"].filter((name) => state.arrays[name]),
              figures = await Promise.all(pictures.map(async (name) => {
                  const canvas = h("canvas", {class: "pixels"}), array = await job.array(name);
                  if (array.shape[1] === 1 || array.shape[1] === 3) paintItem(canvas, array);
                  return h(
                      "figure", null, canvas,
                      h("figcaption", null, name === "original" ? "as the model takes it" : "what is known"));
              }));
        fill(this.results, h("div", {class: "given-row"}, figures), this.tiles.element);
        fill(
            this.downloads,
            h("a", {class: "button", href: job.path("samples", "png"), download: "completions.png"}, "PNG"),
            h("a", {class: "button", href: job.path("samples", "npy"), download: "completions.npy"}, "NPY"));
    }

    pick(i) {
        this.tiles.mark(new Map([[i, ""]]));
        fill(
            this.chosen, h("span", {class: "small"}, `Completion ${i + 1}`),
            h("button", {
                type: "button",
                onclick: () => this.useThing(this.job.thing("samples", i), `completion ${i + 1}`)
                                   .catch((problem) => note(problem.message, true))
            },
              "Go on with this one"),
            h("a", {
                class: "button",
                href: this.job.path("samples", "png", {first: i, count: 1, zoom: 4}),
                download: `completion-${i + 1}.png`
            },
              "PNG"));
    }
}

/* ---- The easel --------------------------------------------------------------------------------------------------- */

/* A picture in the pixels of the model and a mask over it. The mask is painted in these pixels, too: the page shows
 * exactly the model's input. */
class Easel {
    constructor(ondrop, onpaint) {
        this.onpaint = onpaint;
        this.size = 5;
        this.erase = false;
        this.masking = true;
        this.at = null;
        this.picture = h("canvas", {class: "pixels", "aria-hidden": "true"});
        this.over = h("canvas", {
            tabindex: "0",
            role: "application",
            "aria-label": "Easel. Arrow keys move the brush, space paints, and a picture can be dropped here."
        });
        this.hint = empty("Drop a picture here", "PNG, JPEG or WebP; or open one, or take a sample below.");
        this.mask = h("canvas", {width: 28, height: 28, class: "mask", hidden: true});
        this.element = h("div", {class: "easel"}, this.picture, this.hint, this.over, this.mask);
        this.listen(ondrop);
        new ResizeObserver(() => this.draw()).observe(this.element);
    }

    listen(ondrop) {
        const over = (on) => (event) => {
            event.preventDefault();
            this.element.classList.toggle("drop", on);
        };
        this.element.addEventListener("dragover", over(true));
        this.element.addEventListener("dragleave", over(false));
        this.element.addEventListener("drop", (event) => {
            over(false)(event);
            const file = event.dataTransfer.files[0];
            if (file) ondrop(file);
        });
        this.over.addEventListener("pointerdown", (event) => {
            if (!this.masking || !this.filled) return;
            this.over.setPointerCapture(event.pointerId);
            this.last = null;
            this.stroke(this.place(event));
        });
        this.over.addEventListener("pointermove", (event) => {
            this.at = this.place(event);
            if (event.buttons && this.masking && this.filled)
                this.stroke(this.at);
            else
                this.draw();
        });
        this.over.addEventListener("pointerup", () => this.onpaint());
        this.over.addEventListener("pointerleave", () => ((this.at = null), this.draw()));
        this.over.addEventListener("keydown", (event) => this.key(event));
    }

    /* shape: channels, height, width of the model. */
    resize([channels, height, width]) {
        this.grey = channels === 1;
        if (this.mask.width === width && this.mask.height === height) return;
        this.mask.width = width, this.mask.height = height;
        this.element.style.aspectRatio = `${width} / ${height}`;
        if (this.blob) this.showBlob(this.blob);
        this.draw();
    }

    get hasMask() {
        const {width, height} = this.mask,
                      data =
                          this.mask.getContext("2d", {willReadFrequently: true}).getImageData(0, 0, width, height).data;
        for (let i = 3; i < data.length; i += 4)
            if (data[i] > 127) return true;
        return false;
    }

    shown() {
        this.filled = true;
        this.hint.hidden = true;
        this.draw();
    }

    showArray(array) {
        this.blob = null;
        paintItem(this.picture, array);
        this.shown();
    }

    async showPreview(preview) {
        (await openSheet(preview)).paint(this.picture, 0);
        this.hint.hidden = true;
    }

    /* Approximately as the server fits a picture to the model: the largest square in the middle; grey if the model
     * is. */
    async showBlob(blob) {
        this.blob = blob;
        let image;
        try {
            image = await createImageBitmap(blob);
        } catch {
            throw new Error("This picture cannot be read.");
        }
        const {width, height} = this.mask, scale = Math.min(image.width / width, image.height / height),
                      w = width * scale, hh = height * scale;
        this.picture.width = width, this.picture.height = height;
        const context = this.picture.getContext("2d");
        context.imageSmoothingQuality = "high";
        context.filter = this.grey ? "grayscale(1)" : "none";
        context.drawImage(image, (image.width - w) / 2, (image.height - hh) / 2, w, hh, 0, 0, width, height);
        this.shown();
    }

    place(event) {
        const box = this.over.getBoundingClientRect();
        return [
            ((event.clientX - box.left) / box.width) * this.mask.width,
            ((event.clientY - box.top) / box.height) * this.mask.height
        ];
    }

    /* Discs of whole pixels along the way from the last place. */
    stroke(to) {
        const context = this.mask.getContext("2d", {willReadFrequently: true}), from = this.last || to,
              length = Math.hypot(to[0] - from[0], to[1] - from[1]), radius = this.size / 2;
        context.globalCompositeOperation = this.erase ? "destination-out" : "source-over";
        context.fillStyle = "#fff";
        for (let s = 0; s <= Math.ceil(length * 2); s++) {
            const u = length ? s / Math.ceil(length * 2) : 0, cx = from[0] + (to[0] - from[0]) * u,
                  cy = from[1] + (to[1] - from[1]) * u;
            for (let y = Math.max(0, Math.floor(cy - radius)); y <= Math.min(this.mask.height - 1, cy + radius); y++)
                for (let x = Math.max(0, Math.floor(cx - radius)); x <= Math.min(this.mask.width - 1, cx + radius); x++)
                    if (Math.hypot(x + 0.5 - cx, y + 0.5 - cy) <= Math.max(radius, 0.72)) context.fillRect(x, y, 1, 1);
        }
        context.globalCompositeOperation = "source-over";
        this.last = to;
        this.at = to;
        this.draw();
    }

    key(event) {
        const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key],
              {width, height} = this.mask;
        const step = Math.max(1, this.size / (event.shiftKey ? 1 : 3));
        if (move)
            this.at = (this.at || [
                          width / 2, height / 2
                      ]).map((v, i) => Math.max(0, Math.min(i ? height : width, v + move[i] * step)));
        else if (event.key === " " && this.masking && this.filled)
            (this.last = null), this.stroke(this.at || [width / 2, height / 2]), this.onpaint();
        else
            return;
        event.preventDefault();
        this.draw();
    }

    edit(work) {
        work(this.mask.getContext("2d", {willReadFrequently: true}), this.mask.width, this.mask.height);
        this.draw();
        this.onpaint();
    }
    clear() { this.edit((context, width, height) => context.clearRect(0, 0, width, height)); }
    half() {
        this.edit((context, width, height) => {
            context.fillStyle = "#fff";
            context.fillRect(0, Math.floor(height / 2), width, Math.ceil(height / 2));
        });
    }
    invert() {
        this.edit((context, width, height) => {
            context.globalCompositeOperation = "xor";
            context.fillStyle = "#fff";
            context.fillRect(0, 0, width, height);
            context.globalCompositeOperation = "source-over";
        });
    }

    /* White where unknown, black elsewhere. */
    maskBlob() {
        const canvas = h("canvas", {width: this.mask.width, height: this.mask.height}),
              context = canvas.getContext("2d");
        context.fillStyle = "#000";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(this.mask, 0, 0);
        return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    }

    draw() {
        const wide = this.element.clientWidth, high = this.element.clientHeight, ratio = window.devicePixelRatio || 1;
        if (!wide) return;
        this.over.width = wide * ratio, this.over.height = high * ratio;
        const context = this.over.getContext("2d");
        context.scale(ratio, ratio);
        if (!this.masking || !this.filled) return;
        /* The mask as a hatched wash, so that it is seen on light and on dark pictures. */
        const buffer = h("canvas", {width: wide, height: high}), inner = buffer.getContext("2d");
        inner.imageSmoothingEnabled = false;
        inner.drawImage(this.mask, 0, 0, wide, high);
        inner.globalCompositeOperation = "source-in";
        inner.fillStyle = colour("s1");
        inner.fillRect(0, 0, wide, high);
        inner.globalCompositeOperation = "source-atop";
        inner.strokeStyle = "rgb(255 255 255 / 35%)";
        inner.lineWidth = 3;
        inner.beginPath();
        for (let x = -high; x < wide; x += 12) inner.moveTo(x, high), inner.lineTo(x + high, 0);
        inner.stroke();
        context.globalAlpha = 0.72;
        context.drawImage(buffer, 0, 0);
        context.globalAlpha = 1;
        if (!this.at) return;
        const scale = wide / this.mask.width;
        for (const [style, width] of [["rgb(0 0 0 / 60%)", 3], ["#fff", 1.25]]) {
            context.strokeStyle = style;
            context.lineWidth = width;
            context.beginPath();
            context.arc(this.at[0] * scale, this.at[1] * scale, (this.size / 2) * scale, 0, 7);
            context.stroke();
        }
    }
}
