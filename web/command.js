/* The command line with the same effect as a view. */
import {fetchBlob, post} from "./api.js";
import {copy, h, note} from "./dom.js";

/* Pictures that only this server has: samples of jobs, pictures dropped on the page, painted masks. */
const THING = /\b(?:job:\d+\/[a-z]+\/\d+|upload:\d+)(?=\s|$)/g;
const ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp"
};

async function endingOf(thing) {
    if (thing.startsWith("job:")) return ".npy";
    return ENDINGS[(await fetchBlob(`/api/uploads/${thing.slice(7)}`)).type] || ".npy";
}

/* Writes a thing into the folder under an unused name. */
async function saveThing(thing, stem) {
    const ending = await endingOf(thing);
    for (let i = 1;; i++) {
        const path = `${stem}-${i}${ending}`;
        try {
            return (await post("/api/save", {path, thing})).path;
        } catch (problem) {
            if (problem.status !== 409 || i > 999) throw problem;
        }
    }
}

export function commandLine() {
    const code = h("code", null);
    const copying =
        h("button", {type: "button", class: "quiet", onclick: () => copy(code.textContent, "Command line")}, "Copy");
    const saving =
        h("button", {
            type: "button",
            class: "quiet",
            title: "Writes the pictures that this command names into the folder, so that it can be used in a terminal",
            onclick: () => save()
        },
          "Save its pictures");
    const element = h("div", {class: "command", hidden: true}, code, saving, copying);

    async function save() {
        saving.disabled = true;
        try {
            let words = code.textContent;
            const saved = [];
            for (const thing of new Set(words.match(THING))) {
                const at = words.indexOf(thing), stem = /--mask[ =]$/.test(words.slice(0, at)) ? "mask" : "picture";
                saved.push(await saveThing(thing, stem));
                words = words.replaceAll(thing, saved.at(-1));
            }
            show(words);
            note(`Saved ${saved.join(" and ")}: the command can be used in the folder`);
        } catch (problem) {
            note(problem.message, true);
        } finally {
            saving.disabled = false;
        }
    }

    function show(words) {
        code.textContent = words;
        element.hidden = !words;
        saving.hidden = !words.match(THING);
    }

    return {element, get text() { return code.textContent; }, set text(words) { show(words || ""); }};
}
