// Workers, one for each core and two at least, and the jobs that wait for them.

// A run that has taken longer than this, in ms, is not waited for when it is no longer needed: a new worker starts sooner.
const PATIENCE = 120;

export class Pool {
  constructor(module, count = Math.max(2, navigator.hardwareConcurrency || 2)) {
    this.module = module;
    this.queue = [];
    this.places = Array.from({ length: count }, () => ({ job: null }));
    this.places.forEach((place) => this.start(place));
  }
  start(place) {
    place.worker?.terminate();
    place.job = null;
    const worker = place.worker = new Worker("worker.js", { type: "module" });
    worker.postMessage({ module: this.module });
    worker.onmessage = ({ data }) => this.ended(place, data);
    worker.onerror = (event) => this.ended(place, { error: event.message || "a worker cannot be started", broken: true });
  }
  /** Calls a function of the module. A job that is cancelled before it begins never ends. With `first` it goes before those that wait. */
  call(name, args, { group = null, first = false } = {}) {
    return new Promise((done, failed) => {
      this.queue[first ? "unshift" : "push"]({ name, args, group, done, failed });
      this.feed();
    });
  }
  feed() {
    for (const place of this.places) {
      if (place.job || !this.queue.length) continue;
      place.job = this.queue.shift();
      place.since = performance.now();
      place.worker.postMessage({ call: place.job.name, with: place.job.args });
    }
  }
  ended(place, { result, error, broken }) {
    const { job } = place;
    place.job = null;
    if (broken) this.start(place);
    if (job) (error === undefined ? job.done(result) : job.failed(error));
    this.feed();
  }
  /** Cancels the jobs of a group. */
  cancel(group) {
    this.queue = this.queue.filter((job) => job.group !== group);
    for (const place of this.places) {
      if (place.job?.group === group && performance.now() - place.since > PATIENCE) this.start(place);
    }
    this.feed();
  }
}
