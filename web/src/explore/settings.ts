// SPDX-License-Identifier: MIT OR Apache-2.0
// The settings of a picture, as the server lists them (python/ktrxer/panels/settings.py). Their names and texts are
// those of the options of `ktrxer plot`; the server reads the texts and names what is wrong.

import { dict, flag, list, text } from "../data";
import { button, el } from "../dom";
import type { State } from "./state";

export interface Setting {
  name: string;
  help: string;
  /** The form of its value; "": it has none. */
  value: string;
  many: boolean;
  choices: string[];
}

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

const YES = "yes"; // the text of a setting without a value
const FIRST = ["part", "log"]; // beside the plot, where they need one click

export function setting(value: unknown, path: string): Setting {
  const one = dict(value, path);
  return {
    name: text(one.name, `${path}.name`),
    help: text(one.help, `${path}.help`),
    value: text(one.value, `${path}.value`),
    many: flag(one.many, `${path}.many`),
    choices: list(one.choices, `${path}.choices`, text),
  };
}

export class Settings {
  /** Fields that stand beside the plot. */
  readonly first: HTMLElement[] = [];
  readonly root: HTMLElement;
  private readonly fields = new Map<Setting, Field>();
  private readonly title = el("summary", {});

  constructor(
    known: readonly Setting[],
    private readonly state: State,
    private readonly changed: () => void,
  ) {
    const others: HTMLElement[] = [];
    for (const one of known) {
      const quick = FIRST.includes(one.name);
      const field = this.field(one, quick);
      this.fields.set(one, field);
      if (quick) this.first.push(field);
      else others.push(el("label", {}, el("span", {}, one.name), field, el("span", { class: "note" }, note(one))));
    }
    this.root = el(
      "details",
      { class: "settings", hidden: known.length === 0 },
      this.title,
      el("div", { class: "fields" }, ...others),
      button("remove all settings", "Remove all settings", () => {
        this.state.settings.clear();
        this.changed();
      }),
    );
  }

  /** The fields have the values of the state. */
  show(): void {
    for (const [one, field] of this.fields) {
      const texts = this.state.settings.get(one.name) ?? [];
      if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = texts.length > 0;
      else field.value = texts.join("\n");
    }
    const count = this.state.settings.size;
    this.title.textContent = count > 0 ? `Settings (${count})` : "Settings";
  }

  private field(one: Setting, quick: boolean): Field {
    const labels = { title: one.help, "aria-label": quick ? one.help : one.name };
    const field = one.choices.length > 0
      ? el(
          "select",
          labels,
          el("option", { value: "" }, quick ? `${one.name}: as the plot` : "as the plot"),
          ...one.choices.map((choice) => el("option", { value: choice }, quick ? `${one.name}: ${choice}` : choice)),
        )
      : one.value === ""
        ? el("input", { type: "checkbox", ...labels })
        : one.many
          ? el("textarea", { rows: 2, placeholder: one.value, ...labels })
          : el("input", { type: "text", placeholder: one.value, ...labels });
    field.addEventListener("change", () => {
      const texts = textsOf(field);
      if (texts.length > 0) this.state.settings.set(one.name, texts);
      else this.state.settings.delete(one.name);
      this.changed();
    });
    return field;
  }
}

function note(one: Setting): string {
  const help = one.help.replaceAll("`", "");
  return one.many ? `${help.replace(/; may be given again$/, "")}; one in a line` : help;
}

function textsOf(field: Field): string[] {
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked ? [YES] : [];
  return field.value.split("\n").filter((line) => line.trim() !== "");
}
