// Where the reader is, kept in the address's hash, so that every view can be linked, reloaded and gone back to.
import { useEffect, useMemo, useState } from "./sdk";

export type Place = Record<string, string>;

export function here(): Place {
  return Object.fromEntries(new URLSearchParams(location.hash.replace(/^#\/?/, "")));
}

/** The address of a place; what is empty is left out. */
export function to(place: Record<string, string | number | null | undefined>): string {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(place)) if (value !== null && value !== undefined && value !== "") given.set(key, String(value));
  return `#${given.toString()}`;
}

export function go(place: Record<string, string | number | null | undefined>): void {
  location.hash = to(place);
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    addEventListener("popstate", follow);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("popstate", follow);
    };
  }, []);
  return useMemo(here, [hash]);
}
