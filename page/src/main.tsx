// The plugin's script: registers the page with the host, or with the shell that stands in for it.
import { App } from "./app";

if (window.__HERMES_PLUGIN_SDK__ && window.__HERMES_PLUGINS__) window.__HERMES_PLUGINS__.register("pgvector", App);
