// Where the page begins.

const page = document.getElementById("page");
if (page) {
  const answer = await fetch("/v1/machines?limit=1");
  page.textContent = answer.ok ? "The service answers." : `The service answers ${answer.status}.`;
}
