/* The frame of the page: which view is shown, colours, jobs that compute. */
import {aboutServer, jobWatchers} from "./api.js";
import {empty} from "./controls.js";
import {fill, h} from "./dom.js";
import {themeChanged} from "./plot.js";

const NAMES = {
    lab: "Process lab",
    draw: "Draw",
    paint: "Paint",
    runs: "Runs",
    compare: "Compare"
};
const host = document.getElementById("view");
const views = new Map();
let shown = null;

/* ---- Views ------------------------------------------------------------------------------------------------------- */

/* Views are created when they are first opened, and kept with their settings. */
async function open(name) {
    if (!views.has(name)) {
        const {create} = await import(`./${name}.js`);
        views.set(name, await create(await aboutServer()));
    }
    return views.get(name);
}

async function show() {
    const [name, rest] = location.hash.slice(1).split("?");
    if (!(name in NAMES)) return location.replace("#lab");
    for (const link of document.querySelectorAll(".tabs a"))
        if (link.getAttribute("href") === "#" + name)
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    document.title = `${NAMES[name]} · psld studio`;
    const first = shown === null;
    shown = name;
    try {
        const view = await open(name);
        if (shown !== name) return;
        for (const [other, made] of views)
            if (other !== name) made.hide?.();
        fill(host, h("h1", {class: "unseen"}, NAMES[name]), view.element);
        view.show?.(new URLSearchParams(rest || ""));
        if (!first) host.focus({preventScroll: true}), window.scrollTo(0, 0);
    } catch (problem) {
        if (shown === name)
            fill(
                host,
                h("div", {class: "card"},
                  empty(
                      "This view cannot be shown", problem.message,
                      h("button", {type: "button", onclick: () => show()}, "Try again"))));
    }
}

addEventListener("hashchange", show);

/* ---- Colours ----------------------------------------------------------------------------------------------------- */

const THEMES = {
    "": [
        "Colours: as the system",
        "<circle cx=\"12\" cy=\"12\" r=\"8\"/><path d=\"M12 4v16M12 7l6-1M12 11h8M12 15h7.5\"/>"
    ],
    light: [
        "Colours: light",
        "<circle cx=\"12\" cy=\"12\" r=\"4\"/><path d=\"M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.400M18.4 5.6 17 7M7 17l-1.4 1.4\"/>"
    ],
    dark: ["Colours: dark", "<path d=\"M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z\"/>"],
};
const button = document.getElementById("theme");

function stored(key, value) {
    try {
        if (value !== undefined) localStorage.setItem(key, value);
        return localStorage.getItem(key);
    } catch {
        return null; /* a browser without storage */
    }
}

function setTheme(theme) {
    if (theme)
        document.documentElement.dataset.theme = theme;
    else
        delete document.documentElement.dataset.theme;
    button.setAttribute("aria-label", THEMES[theme][0]);
    button.title = THEMES[theme][0];
    button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true">${THEMES[theme][1]}</svg>`;
    themeChanged();
}
button.addEventListener("click", () => {
    const order = ["", "light", "dark"],
          next = order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % 3];
    stored("psld-theme", next);
    setTheme(next);
});
const kept = stored("psld-theme");
setTheme(kept in THEMES && kept ? kept : "");

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

const jobs = document.getElementById("jobs");
jobWatchers.add((count) => (jobs.textContent = count ? (count === 1 ? "computing" : `${count} jobs`) : ""));

show();
