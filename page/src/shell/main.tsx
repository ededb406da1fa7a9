// Stands in for the host's dashboard where there is none: the same names, filled with little.
import * as React from "preact/compat";
import type { Sdk } from "../sdk";
import "./shell.css";

const h = React.createElement;
type Given = Record<string, any> & { className?: string };

const box = (element: string, name: string) => ({ className = "", ...rest }: Given) => h(element, { className: `${name} ${className}`, ...rest });

function Button({ className = "", size: _size, outlined, ghost: _ghost, type = "button", ...rest }: Given) {
  return h("button", { type, className: `pgv-button ${outlined ? "" : "pgv-button-main"} ${className}`, ...rest });
}

// The half of the session that no other port's page or program gets: it comes once, in the address, and stays in the
// storage of this origin. Cookies are sent to every port of a host.
const KEY = "pgv-key";

function takeKey(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get(KEY);
  if (!given) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  localStorage.setItem(KEY, given);
}

takeKey();

async function fetchJSON(path: string, init: RequestInit = {}): Promise<unknown> {
  const answer = await fetch(path, { ...init, headers: { ...init.headers, "X-Pgvector-Page": localStorage.getItem(KEY) ?? "none" }, credentials: "same-origin", redirect: "error" });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return JSON.parse(text);
}

window.__HERMES_PLUGIN_SDK__ = {
  React: React as unknown as Sdk["React"],
  components: {
    Card: box("section", "shell-card"),
    CardHeader: box("div", "shell-card-head"),
    CardTitle: box("h2", "shell-card-title"),
    CardContent: box("div", "shell-card-content"),
    Button,
    Input: box("input", "pgv-input"),
  } as unknown as Sdk["components"],
  fetchJSON,
};
window.__HERMES_PLUGINS__ = {
  register(_name, component) {
    const place = document.getElementById("page")!;
    place.textContent = "";
    const frame = h("div", { className: "shell" },
      h("header", { className: "shell-head" }, h("h1", null, "Memory"), h("p", null, "hermes-pgvector")),
      h("main", { className: "shell-main" }, h(component as never, {})));
    React.render(frame, place);
  },
};
