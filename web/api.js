/* Talking to the server: JSON, uploads, jobs and their events. The cookie carries the token. */
import {note} from "./dom.js";

export class Refusal extends Error {
    constructor(message, status) {
        super(message);
        this.status = status;
    }
}

const LOST = "The server does not answer. Is psld serve still running?";
const STALE = "The server does not know this page any more. Open the address that psld serve printed.";

async function answered(response) {
    if (response.ok) return response;
    let message = response.status === 401 ? STALE : `${response.status} ${response.statusText}`;
    try {
        message = (response.status === 401 && STALE) || (await response.json()).error || message;
    } catch { /* an answer without a message: show its number */
    }
    throw new Refusal(message, response.status);
}

async function request(path, options) {
    let response;
    try {
        response = await fetch(path, {credentials: "same-origin", ...options});
    } catch (problem) {
        if (problem.name === "AbortError") throw problem;
        throw new Refusal(LOST, 0);
    }
    return answered(response);
}

export const query = (values) =>
    new URLSearchParams(Object.entries(values).filter(([, v]) => v !== undefined && v !== null)).toString();
export const get = async (path, values) => (await request(values ? `${path}?${query(values)}` : path)).json();
export const fetchBlob = async (path) => (await request(path)).blob();
export const post = async (path, body, signal) =>
    (await request(
         path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body), signal}))
        .json();
export const remove = async (path) => (await request(path, {method: "DELETE"})).json();

export async function upload(blob, name) {
    const type = /^image\/(png|jpeg|webp)$/.test(blob.type) ? blob.type : "application/octet-stream";
    return (await request(
                `/api/uploads?${query({name})}`, {method: "POST", headers: {"Content-Type": type}, body: blob}))
        .json();
}

/* The numbers of a .npy: {shape, data}. The server writes little-endian float32 or uint8 in C order. */
export async function array(path) {
    const buffer = await (await request(path)).arrayBuffer(), view = new DataView(buffer);
    const wide = view.getUint8(6) > 1, length = wide ? view.getUint32(8, true) : view.getUint16(8, true),
          start = (wide ? 12 : 10) + length;
    const head = new TextDecoder().decode(new Uint8Array(buffer, wide ? 12 : 10, length));
    const shape = (/'shape': \(([^)]*)\)/.exec(head)[1].match(/\d+/g) || []).map(Number);
    const Type = {
        "<f4": Float32Array,
        "<f8": Float64Array,
        "|u1": Uint8Array,
        "<i4": Int32Array
    }[/'descr': '([^']*)'/.exec(head)[1]];
    return {shape, data: new Type(buffer.slice(start))};
}

let about = null;
export function aboutServer() {
    about ||= get("/api/about").catch((problem) => {
        about = null;
        throw problem;
    });
    return about;
}

/* The files of some kinds, those of the folder first. */
export async function files(...kinds) {
    const all = (await get("/api/files")).files.filter((file) => kinds.includes(file.kind));
    return all.sort((a, b) => a.shipped - b.shipped || a.path.localeCompare(b.path));
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Named events with JSON; returns a function that closes the stream. The browser reopens a broken stream. */
export function events(path, listeners) {
    const stream = new EventSource(path);
    for (const [name, listener] of Object.entries(listeners))
        stream.addEventListener(name, (event) => listener(JSON.parse(event.data)));
    return () => stream.close();
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

const working = new Set();
export const jobWatchers = new Set();

function tellWatchers() {
    for (const watcher of jobWatchers) watcher(working.size);
}

/* A job from its request to its end. on: {state, progress, preview}. `finished` resolves with the last state of a job
 * that is done or was cancelled, and is rejected with the message of one that failed. */
export class Job {
    constructor(body, on = {}) {
        this.on = on;
        this.cancelled = false;
        this.finished = this.run(body);
    }

    async run(body) {
        working.add(this);
        tellWatchers();
        try {
            this.state = await post("/api/jobs", body);
            this.id = this.state.id;
            if (this.cancelled) remove(`/api/jobs/${this.id}`).catch(() => {});
            this.on.state?.(this.state);
            return await this.watch();
        } finally {
            working.delete(this);
            tellWatchers();
        }
    }

    watch() {
        return new Promise((resolve, reject) => {
                   let lost = 0;
                   const settle = () => {
                       close();
                       if (this.state.state === "failed")
                           reject(new Refusal(this.state.error || "the job failed", 422));
                       else
                           resolve(this.state);
                   };
                   const close = events(`/api/jobs/${this.id}/events`, {
                       state: (state) => {
                           this.state = state;
                           this.on.state?.(state);
                       },
                       progress: (progress) => this.on.progress?.(progress),
                       preview: (preview) => !this.cancelled && this.on.preview?.(preview),
                       end: settle,
                   });
                   /* A stream that cannot be opened, or breaks for good: ask for the state instead. */
                   const poll = setInterval(async () => {
                       if (["done", "failed", "cancelled"].includes(this.state.state))
                           return clearInterval(poll), settle();
                       try {
                           this.state = await get(`/api/jobs/${this.id}`);
                           lost = 0;
                       } catch (problem) {
                           if (problem.status === 404 || ++lost > 5) {
                               clearInterval(poll);
                               close();
                               reject(problem);
                           }
                       }
                   }, 3000);
                   this.stopPolling = () => clearInterval(poll);
               })
            .finally(() => this.stopPolling());
    }

    cancel() {
        this.cancelled = true;
        if (this.id && !["done", "failed", "cancelled"].includes(this.state.state))
            remove(`/api/jobs/${this.id}`).catch((problem) => note(problem.message, true));
    }

    /* Frees the results that the server keeps. */
    free() {
        if (this.id) remove(`/api/jobs/${this.id}`).catch(() => {});
    }

    path(array, form, values = {}) {
        const text = query(values);
        return `/api/jobs/${this.id}/${array}.${form}${text ? "?" + text : ""}`;
    }
    thing(array, index) { return `job:${this.id}/${array}/${index}`; }
    array(name, values) { return array(this.path(name, "npy", values)); }
}
