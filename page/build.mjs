// Builds the page twice: as the plugin's script, which takes React from the host, and the shell that stands in for the
// host where there is none. `node build.mjs FOLDER` writes below another folder, to compare.
import { rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? resolve(here, "../src/hermes_memory_pgvector"));
const bundles = [
  { entry: "src/main.tsx", script: "index.js", style: "style.css", folder: "hermes_plugin/dashboard/page" },
  { entry: "src/shell/main.tsx", script: "shell.js", style: "shell.css", folder: "web/static" },
];

for (const { entry, script, style, folder } of bundles) {
  const outDir = resolve(target, folder);
  for (const name of [script, style]) rmSync(resolve(outDir, name), { force: true });
  await build({
    root: here,
    configFile: false,
    logLevel: "warn",
    define: { "process.env.NODE_ENV": '"production"' },
    esbuild: { jsxFactory: "h", jsxFragment: "Fragment", legalComments: "none", charset: "ascii" },
    build: {
      outDir,
      emptyOutDir: false,
      target: "es2022",
      cssTarget: "chrome111",
      lib: { entry: resolve(here, entry), name: "pgv", formats: ["iife"], fileName: () => script, cssFileName: style.replace(".css", "") },
    },
  });
}
