// Signs in and signs decisions with a reviewer's Ed25519 key, which never leaves this browser and cannot be read back.
"use strict";

const PKCS8 = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]; // RFC 8410, before the 32 bytes of the key
const APPROVAL_TAG = "interlock-approval-v1\0";
const SIGN_IN_TAG = "interlock-sign-in-v1\n";
const LONGEST_LIFE_S = 86400, APPROVAL_LIFE_S = 900;
const COMPENSATE = "compensate"; // a decision about a step that is stuck; the others are about a held response
const DATABASE = "interlock-oversight", STORE = "keys", SLOT = "reviewer";

const text = new TextEncoder();
const by = (id) => document.getElementById(id);
const reviewer = () => document.body.dataset.reviewer || "";

function tell(message) {
  by("status").textContent = message;
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function unbase64url(word) {
  return Uint8Array.from(atob(word.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
}

function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function inStore(mode, work) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction(STORE, mode);
      const asked = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => { opening.result.close(); resolve(asked.result); };
      transaction.onerror = () => { opening.result.close(); reject(transaction.error); };
    };
  });
}

const keep = (held) => inStore("readwrite", (store) => store.put(held, SLOT));
const kept = () => inStore("readonly", (store) => store.get(SLOT));
const forget = () => inStore("readwrite", (store) => store.delete(SLOT));

async function asked(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${body.reason}: ${body.message}`);
  return body;
}

function posted(path, value) {
  const headers = { "content-type": "application/json" };
  if (document.body.dataset.csrf) headers["x-csrf-token"] = document.body.dataset.csrf;
  return asked(path, { method: "POST", headers, body: JSON.stringify(value) });
}

async function readKey(file) {
  if (file.size > 4096) throw new Error("that is no key file of interlock oversight keygen");
  const content = await file.text();
  const name = /^reviewer: *['"]?([A-Za-z0-9._@+-]{1,128})['"]? *$/m.exec(content);
  const secret = /^private_key: *['"]?ed25519:([A-Za-z0-9_-]{43})['"]? *$/m.exec(content);
  if (!name || !secret) throw new Error("that is no key file of interlock oversight keygen");
  const raw = unbase64url(secret[1]);
  const pkcs8 = Uint8Array.from([...PKCS8, ...raw]);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "Ed25519" }, false, ["sign"]);
  raw.fill(0);
  pkcs8.fill(0);
  return { reviewer: name[1], key };
}

async function signIn(event) {
  event.preventDefault();
  try {
    if (!globalThis.crypto?.subtle) throw new Error("this page needs HTTPS, or a loopback address, to use your key");
    const held = await readKey(by("key-file").files[0]);
    const drawn = await posted("/api/challenge", { reviewer_id: held.reviewer });
    if (!drawn.challenge.startsWith(`${SIGN_IN_TAG}${held.reviewer}\n`)) throw new Error("that is no challenge to sign in");
    const signature = await crypto.subtle.sign("Ed25519", held.key, text.encode(drawn.challenge));
    await posted("/api/sign-in", {
      reviewer_id: held.reviewer, challenge: drawn.challenge, signature: base64url(signature),
    });
    await keep(held);
    location.assign("/");
  } catch (fault) {
    tell(`Not signed in. ${fault.message}`);
  }
}

async function signOut(event) {
  event.preventDefault();
  await forget().catch(() => undefined);
  event.target.submit();
}

// The words of domain/approval.py: canonical JSON, keys in order, ASCII only.
function payloadOf(action, data, outcome) {
  const now = Math.floor(Date.now() / 1000);
  const left = data.expires ? Math.floor(Date.parse(data.expires) / 1000) - now : APPROVAL_LIFE_S;
  const scope = action === COMPENSATE
    ? { kernel: data.kernel, outcome, record: data.record, step: data.step }
    : { policy: data.policy, response: data.response, session: data.session, window: data.window };
  return JSON.stringify({
    action, exp: now + Math.max(60, Math.min(left, LONGEST_LIFE_S)), iat: now,
    id: "crp_appr_" + hex(crypto.getRandomValues(new Uint8Array(16))), kv: 1, reviewer: reviewer(), scope,
  });
}

async function decide(event) {
  event.preventDefault();
  const form = event.currentTarget, data = by("decide").dataset, action = form.dataset.action;
  const buttons = document.querySelectorAll("form.decision button");
  buttons.forEach((button) => { button.disabled = true; });
  try {
    const held = await kept();
    if (!held || held.reviewer !== reviewer()) throw new Error("your key is not here: sign out, and in again with its file");
    const payload = text.encode(payloadOf(action, data, form.dataset.outcome));
    const signed = Uint8Array.from([...text.encode(APPROVAL_TAG), ...payload]);
    const signature = await crypto.subtle.sign("Ed25519", held.key, signed);
    const token = `approved:sha256:${base64url(payload)}.${base64url(signature)}`;
    const said = { token, reason: form.elements.reason.value };
    const item = action === COMPENSATE
      ? await posted(`/api/stuck/${data.kernel}/decision`, { ...said, step: data.step })
      : await posted(`/api/held/${data.window}/decision`, said);
    if (item.approved === false) throw new Error(item.status);
    tell(`Decided: ${item.status}.`);
    location.assign(action === COMPENSATE ? data.queue : `/held/${data.window}`);
  } catch (fault) {
    tell(`Not decided. ${fault.message}`);
    buttons.forEach((button) => { button.disabled = false; });
    by("status").focus();
  }
}

// What is signed is the hash of the bytes; that they are the ones this page shows is not taken on trust.
async function checkHash(section) {
  if (section.dataset.kernel) return enableForms(); // its record is checked where the decision is made
  const answer = await fetch(`/api/held/${section.dataset.window}/body`, { cache: "no-store", redirect: "error" });
  if (!answer.ok) throw new Error("the held bytes cannot be read");
  const digest = "sha256:" + hex(await crypto.subtle.digest("SHA-256", await answer.arrayBuffer()));
  if (digest !== section.dataset.response) throw new Error("the held bytes are not those of the response hash");
  by("checked").textContent = "Checked in this browser: the bytes that are held have the response hash above.";
  enableForms();
}

function enableForms() {
  document.querySelectorAll("form.decision button").forEach((button) => { button.disabled = false; });
}

function moveInQueue(step) {
  const items = Array.from(document.querySelectorAll("a.item"));
  const at = items.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1);
  items[next]?.focus();
}

// A form of this page, or of the page of the answer that is chosen in the queue.
function goToForm(id) {
  const chosen = document.activeElement?.closest?.("a.item[href^='/held/']");
  if (by(id)) by(id).focus();
  else if (chosen) location.assign(`${chosen.getAttribute("href")}#${id}`);
}

const KEYS = {
  j: () => moveInQueue(1),
  k: () => moveInQueue(-1),
  a: () => goToForm("release-reason"),
  r: () => goToForm("reject-reason"),
  t: () => by("text")?.focus(),
  u: () => location.assign(by("decide")?.dataset.queue || "/"),
  "?": () => { const keys = by("keys"); if (keys) { keys.open = true; keys.querySelector("summary").focus(); } },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

by("key-form")?.addEventListener("submit", signIn);
by("sign-out")?.addEventListener("submit", signOut);
document.querySelectorAll("form.decision").forEach((form) => form.addEventListener("submit", decide));
if (location.hash.endsWith("-reason")) by(location.hash.slice(1))?.focus();
if (by("decide")) checkHash(by("decide")).catch((fault) => { by("checked").textContent = `Nothing can be signed: ${fault.message}.`; });
