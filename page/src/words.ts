// Numbers and times as people read them.
const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const date = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });

export const count = (value: number) => number.format(value);
export const counted = (value: number, one: string, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;
export const signed = (value: number) => (value > 0 ? `+${count(value)}` : value < 0 ? `−${count(-value)}` : "0");
export const when = (iso: string) => clock.format(new Date(iso));
export const day = (iso: string) => date.format(new Date(`${iso}T00:00:00Z`));
export const percent = (share: number) => `${Math.round(100 * share)} %`;

const STEPS: [number, string][] = [[60, "second"], [60, "minute"], [24, "hour"], [7, "day"], [4.35, "week"], [12, "month"], [Infinity, "year"]];

export function ago(iso: string | null): string {
  if (!iso) return "never";
  let amount = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (amount < 45) return "just now";
  for (const [size, unit] of STEPS) {
    if (amount < size) return `${counted(Math.round(amount), unit)} ago`;
    amount /= size;
  }
  return when(iso);
}
