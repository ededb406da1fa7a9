// Setting up: all of doctor's checks with their commands, and the settings.
import { Refusal, change, type Health, type Setting, type Settings } from "./api";
import { Checks } from "./health";
import { useLoad } from "./load";
import { Command, Dialog, Stored, Trouble, Waiting } from "./parts";
import { counted } from "./words";
import { Button, Card, CardContent, CardHeader, CardTitle, Fragment, Input, h, useId, useState, type ChangeEvent } from "./sdk";

export function SetupView() {
  const checks = useLoad<Health>("checks");
  return (
    <div className="pgv-stack">
      <Card>
        <CardHeader className="pgv-head">
          <CardTitle>Checks</CardTitle>
          <Button size="sm" outlined onClick={checks.reload}>Check again</Button>
        </CardHeader>
        <CardContent>
          {checks.error ? <Trouble error={checks.error} reload={checks.reload} /> : null}
          {checks.data ? (
            <Fragment>
              <p role="status"><strong>{checks.data.summary}</strong></p>
              {checks.data.set_up ? null : <p>One command sets up the database, the plugin folder and the settings: <Command text="hermes-pgvector up" /></p>}
              <Checks checks={checks.data.checks} />
            </Fragment>
          ) : checks.error ? null : <Waiting what="every part, which may take some seconds" />}
        </CardContent>
      </Card>
      <SettingsForm />
    </div>
  );
}

function SettingsForm() {
  const loaded = useLoad<Settings>("settings");
  const [saved, setSaved] = useState<Settings | null>(null);
  const [edits, setEdits] = useState<Record<string, string>>({});
  const [asks, setAsks] = useState(false);
  const [error, setError] = useState<Refusal | null>(null);
  const [said, setSaid] = useState("");
  const form = saved ?? loaded.data;
  if (!form) return loaded.error ? <Trouble error={loaded.error} reload={loaded.reload} /> : <Waiting what="the settings" />;
  const changed = form.settings.filter((each) => edits[each.name] !== undefined && edits[each.name] !== each.value);
  const save = () => {
    const changes = Object.fromEntries(changed.map((each) => [each.name, { from: each.value, to: edits[each.name] === each.default ? null : edits[each.name] }]));
    change<Settings>("settings", { changes }).then(
      (document) => {
        setSaved(document);
        setEdits({});
        setAsks(false);
        setError(null);
        setSaid(`Saved: ${document.saved?.join(", ") || "nothing had changed"}. Running agents follow within seconds.`);
      },
      (refusal: Refusal) => {
        setError(refusal);
        setAsks(false);
        setSaved(null);
        loaded.reload();
      },
    );
  };
  return (
    <Card>
      <CardHeader><CardTitle>Settings</CardTitle></CardHeader>
      <CardContent>
        <p className="pgv-faint">Only what you change is written to config.yaml. The connection string stays with the command line: <Command text="hermes-pgvector config set dsn DSN" /></p>
        {form.problems.map((problem) => <p key={problem} className="pgv-note">{problem}</p>)}
        <p role="status">{said}</p>
        {error ? <Trouble error={error} said="Nothing was saved." /> : null}
        <form onSubmit={(event) => { event.preventDefault(); setSaid(""); if (changed.length) setAsks(true); }}>
          <div className="pgv-settings">
            {form.settings.map((each) => <Field key={each.name} setting={each} value={edits[each.name] ?? each.value} onChange={(value) => setEdits({ ...edits, [each.name]: value })} />)}
          </div>
          <p className="pgv-buttons pgv-sticky">
            <span>{changed.length ? counted(changed.length, "change") : "No changes"}</span>
            <button type="button" className="pgv-button" disabled={!changed.length} onClick={() => setEdits({})}>Leave all as they were</button>
            <button type="submit" className="pgv-button pgv-button-main" disabled={!changed.length}>Save…</button>
          </p>
        </form>
        {asks ? (
          <Dialog title="Save these settings?" onClose={() => setAsks(false)}>
            <ul>{changed.map((each) => <li key={each.name}><code>{each.name}</code>: <Stored text={each.value || "(empty)"} /> → <strong><Stored text={edits[each.name] || "(empty)"} /></strong></li>)}</ul>
            <p className="pgv-buttons">
              <button type="button" className="pgv-button" onClick={() => setAsks(false)} autoFocus>Leave them</button>
              <button type="button" className="pgv-button pgv-button-main" onClick={save}>Save</button>
            </p>
          </Dialog>
        ) : null}
      </CardContent>
    </Card>
  );
}

function Field({ setting, value, onChange }: { setting: Setting; value: string; onChange: (value: string) => void }) {
  const id = useId();
  const isChanged = value !== setting.value;
  const props = { id, value, disabled: Boolean(setting.fixed), "aria-describedby": `${id}-help`, onChange: (event: ChangeEvent) => onChange(event.target.value) };
  return (
    <div className={`pgv-setting ${isChanged ? "pgv-setting-changed" : ""}`}>
      <label htmlFor={id}><code>{setting.name}</code>{isChanged ? <strong> changed</strong> : null}</label>
      {setting.choices.length ? <select className="pgv-select" {...props}>{setting.choices.map((each) => <option key={each} value={each}>{each}</option>)}</select> : <Input {...props} spellCheck={false} autoComplete="off" />}
      <p id={`${id}-help`} className="pgv-faint">{setting.help} {setting.expects ? `Expects ${setting.expects}. ` : ""}{setting.fixed ? setting.fixed : setting.from === "default" ? "This is the default." : `From ${setting.from}; the default is ${setting.default || "empty"}.`}</p>
    </div>
  );
}
