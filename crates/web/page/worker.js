// Makes runs in a thread of its own. The first message has the compiled module, each further one a job: the name of a function and its
// arguments. The answer has the result, or the line that says what is wrong.
import init, * as coapace from "./coapace.js";

let ready = null;
onmessage = async ({ data }) => {
  if (data.module) {
    ready = init({ module_or_path: data.module });
    return;
  }
  try {
    await ready;
    postMessage({ result: coapace[data.call](...data.with) });
  } catch (error) {
    // A text is a refusal. Anything else is a trap, after which the module cannot be used.
    const isRefused = typeof error === "string";
    postMessage({ error: isRefused ? error : `the simulator stopped: ${error.message ?? error}`, broken: !isRefused });
  }
};
