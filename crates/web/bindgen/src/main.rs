//! bindgen MODULE FOLDER: writes the JavaScript of the playground's module into a folder, and the module with it. The command of wasm-bindgen does the
//! same, but runs tests in browsers, too, for which it compiles an HTTP server and a TLS client.

use std::env::args;

use wasm_bindgen_cli_support::Bindgen;

fn main() {
    let paths: Vec<String> = args().skip(1).collect();
    let [module, folder] = &paths[..] else {
        eprintln!("usage: bindgen MODULE FOLDER");
        std::process::exit(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("coapace").typescript(false);
    bindgen.remove_name_section(true).remove_producers_section(true);
    if let Err(error) = bindgen.web(true).and_then(|web| web.generate(folder)) {
        eprintln!("{error:#}");
        std::process::exit(1);
    }
}
