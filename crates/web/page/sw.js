// Keeps the page, so that it works without a network. The build writes the files and a hash of them into this file.
const [CACHE, FILES] = ["coapace-__HASH__", ["./", ...__FILES__]];

addEventListener("install", (event) => event.waitUntil((async () => {
  const cache = await caches.open(CACHE);
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
  await skipWaiting();
})()));
addEventListener("activate", (event) => event.waitUntil((async () => {
  const old = (await caches.keys()).filter((name) => name.startsWith("coapace-") && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
})()));
addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith((async () => (await (await caches.open(CACHE)).match(event.request, { ignoreSearch: true })) ?? fetch(event.request))());
});
