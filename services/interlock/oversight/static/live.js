// Brings the page up to date when something happened, and signs in by the link of `interlock console`. Without scripts a page is read as it is.
"use strict";

const LEAST_MS = 1000; // between two updates: a reader must be able to read

function signInByLink() {
  const form = document.getElementById("link-form");
  if (!form || !location.hash) return;
  const said = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, "", location.pathname); // the secret stays in no history
  if (!said.get("secret")) return;
  form.elements.secret.value = said.get("secret");
  form.elements.viewer.value = said.get("viewer") || "viewer";
  form.submit();
}

function isBusy(part) {
  return part.contains(document.activeElement) && document.activeElement.matches("input, select");
}

async function update(part) {
  if (isBusy(part) || document.hidden) return;
  const answer = await fetch(location.href, {
    credentials: "same-origin", cache: "no-store", redirect: "error", headers: { "x-interlock-part": "fresh" },
  });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("fresh");
  if (!fresh || isBusy(part) || fresh.innerHTML === part.innerHTML) return;
  const focused = document.activeElement?.getAttribute?.("href");
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? false; });
  if (focused) [...part.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === focused)?.focus();
}

function follow(part) {
  const light = document.getElementById("live");
  let last = 0, waiting = 0;
  const events = new EventSource("/events");
  events.onopen = () => { light.hidden = false; };
  events.onerror = () => { light.hidden = true; };
  events.addEventListener("changed", () => {
    if (waiting) return;
    waiting = setTimeout(async () => {
      waiting = 0;
      last = Date.now();
      try { await update(part); } catch { light.hidden = true; }
    }, Math.max(0, last + LEAST_MS - Date.now()));
  });
}

signInByLink();
const part = document.querySelector("[data-live]");
if (part) follow(part);
