// Stands in for the host's dashboard where there is none: the same names, filled with little.
import * as React from "preact/compat";
import type { Sdk } from "../sdk";
import "./shell.css";

const h = React.createElement;
// What opens the page: it comes in the address's fragment, which no server sees, and stays in the storage of this origin,
// so that a reload and a second tab have it.
const KEY = "k";

function takeKey(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get(KEY);
  if (!given) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  localStorage.setItem(KEY, given);
}

takeKey();
// The address may be opened once more in a tab that shows the page.
addEventListener("hashchange", () => {
  if (!new URLSearchParams(location.hash.slice(1)).get(KEY)) return;
  takeKey();
  location.reload();
});

async function fetchJSON(path: string, init: RequestInit = {}): Promise<unknown> {
  const answer = await fetch(path, { ...init, headers: { ...init.headers, "X-Pgvector-Page": localStorage.getItem(KEY) ?? "none" }, credentials: "omit", redirect: "error" });
  const text = await answer.text();
  if (answer.status === 401) askForKey();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** Whoever has no key, or one of a server that has ended, can type it. */
function askForKey(): void {
  const place = document.getElementById("page")!;
  if (place.querySelector("form.shell-enter")) return;
  const enter = (event: Event) => {
    event.preventDefault();
    const typed = (place.querySelector("#token") as HTMLInputElement).value.trim();
    localStorage.setItem(KEY, new URLSearchParams(typed.slice(typed.indexOf("#") + 1)).get(KEY) ?? typed);
    location.reload();
  };
  React.render(
    h("form", { className: "shell-enter", onSubmit: enter },
      h("h1", null, "This page needs its token"),
      h("p", null, "Open the address that hermes-pgvector ui prints, or type the token of its --token-file:"),
      h("p", null, h("label", { htmlFor: "token" }, "Token "), h("input", { id: "token", type: "password", autoComplete: "off", required: true, autoFocus: true }), " ", h("button", { type: "submit" }, "Open"))) as never,
    place,
  );
}

window.__HERMES_PLUGIN_SDK__ = {
  React: React as unknown as Sdk["React"],
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
