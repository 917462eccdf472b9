/* Pictures from arrays and sheets, and tiles that show them. Pixels are (v + 1) 127.5, as psld writes them. */
import {fill, h} from "./dom.js";

/* Draws item `index` of an array [n, c, height, width] with 1 or 3 channels. */
export function paintItem(canvas, array, index = 0) {
    const [, channels, height, width] = array.shape, size = height * width, from = index * channels * size;
    const image = new ImageData(width, height);
    for (let i = 0; i < size; i++)
        for (let c = 0; c < 3; c++) {
            const v = array.data[from + (channels >= 3 ? c : 0) * size + i];
            image.data[4 * i + c] = Math.round(Math.max(0, Math.min(255, (v + 1) * 127.5)));
        }
    for (let i = 0; i < size; i++) image.data[4 * i + 3] = 255;
    canvas.width = width;
    canvas.height = height;
    canvas.getContext("2d").putImageData(image, 0, 0);
}

/* One channel of an item, brought to its own range: for states, which have no colours. */
export function paintChannel(canvas, array, index, channel) {
    const [, channels, height, width] = array.shape, size = height * width, from = (index * channels + channel) * size;
    let largest = 1e-9;
    for (let i = 0; i < size; i++) largest = Math.max(largest, Math.abs(array.data[from + i]));
    paintItem(
        canvas, {shape: [1, 1, height, width], data: array.data.slice(from, from + size).map((v) => v / largest)}, 0);
}

/* A picture of a preview: a sheet with equal gaps. */
export async function openSheet(preview) {
    const image = new Image();
    image.src = "data:image/png;base64," + preview.png;
    await image.decode();
    const [, height, width] = preview.shape, {columns} = preview,
                     gap = (image.naturalWidth - columns * width) / (columns + 1);
    return {
        image,
        paint: (canvas, i) => {
            canvas.width = width;
            canvas.height = height;
            const context = canvas.getContext("2d");
            context.drawImage(
                image, gap + (i % columns) * (width + gap), gap + Math.floor(i / columns) * (height + gap), width,
                height, 0, 0, width, height);
        }
    };
}

/* A grid of tiles that can be chosen: pick(i). */
export class Tiles {
    constructor(label, pick) {
        this.pick = pick;
        this.element = h("div", {class: "tiles", role: "group", "aria-label": label});
        this.element.addEventListener("keydown", (event) => this.key(event));
        this.count = 0;
        new ResizeObserver(() => this.arrange()).observe(this.element);
    }

    /* As many columns as fit; of similar numbers, one whose last row is not half empty. */
    arrange() {
        const room = this.element.clientWidth, count = this.count;
        if (!room || !count) return;
        const least = count <= 4 ? 150 :
            count <= 16          ? 90 :
            count <= 36          ? 64 :
            room < 500           ? 36 :
                                   46,
              most = Math.max(1, Math.min(count, Math.floor((room + 4) / (least + 4))));
        let columns = most;
        for (let k = most; k >= 0.6 * most; k--)
            if (count % k === 0) {
                columns = k;
                break;
            }
        this.element.style.setProperty("--columns", columns);
    }

    make(count, shape, name = (i) => `Sample ${i}`) {
        const [, height, width] = shape;
        this.element.style.setProperty("--ratio", `${width} / ${height}`);
        if (count !== this.count || this.small !== width < 100) {
            this.count = count;
            this.small = width < 100;
            this.arrange();
            fill(
                this.element,
                Array.from(
                    {length: count},
                    (_, i) =>
                        h("button", {
                            type: "button",
                            class: "tile",
                            "aria-pressed": "false",
                            disabled: true,
                            onclick: () => this.pick?.(i)
                        },
                          h("canvas", {class: this.small ? "pixels" : "", width: 1, height: 1}))));
        }
        [...this.element.children].forEach((tile, i) => {
            tile.setAttribute("aria-label", name(i));
            tile.disabled = true;
        });
        this.mark(new Map());
    }

    canvas(i) { return this.element.children[i].firstChild; }

    clear() {
        for (let i = 0; i < this.count; i++) this.canvas(i).width = 1;
    }

    async preview(preview) {
        const sheet = await openSheet(preview), first = preview.first - (this.first || 0);
        for (let i = 0; i < preview.count; i++)
            if (this.element.children[first + i]?.disabled) sheet.paint(this.canvas(first + i), i);
    }

    show(array) {
        for (let i = 0; i < Math.min(this.count, array.shape[0]); i++) {
            paintItem(this.canvas(i), array, i);
            this.element.children[i].disabled = !this.pick;
        }
    }

    /* marks: index to a letter, or "" for chosen alone. */
    mark(marks) {
        [...this.element.children].forEach((tile, i) => {
            tile.setAttribute("aria-pressed", String(marks.has(i)));
            if (marks.get(i))
                tile.dataset.mark = marks.get(i);
            else
                delete tile.dataset.mark;
        });
    }

    /* Arrow keys go from tile to tile. */
    key(event) {
        const tiles = [...this.element.children], at = tiles.indexOf(document.activeElement);
        if (at < 0) return;
        const columns = tiles.filter((tile) => tile.offsetTop === tiles[0].offsetTop).length;
        const move = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
        if (!move || !tiles[at + move]) return;
        event.preventDefault();
        tiles[at + move].focus();
    }
}

/* Pictures side by side with words below: items of an array [n, c, h, w]. */
export function strip(array, words, label) {
    const small = array.shape[3] < 100;
    return h(
        "div", {class: "strip", role: "img", tabindex: "0", "aria-label": label},
        Array.from({length: array.shape[0]}, (_, i) => {
            const canvas = h("canvas", {class: small ? "pixels" : ""});
            paintItem(canvas, array, i);
            return h("figure", null, canvas, words && h("figcaption", null, words[i] ?? ""));
        }));
}
