// A page that is served while its run goes on: asks for what is new, and shows it.

const LIVE = JSON.parse(document.getElementById("live").textContent);
const said = document.getElementById("state");
let version = LIVE.version;

function showNews(news) {
  version = news.version;
  document.getElementById("summary").textContent = news.summary;
  const table = document.getElementById("diagnostics");
  const isFirst = (news.scene && typeof replaceScene === "undefined") || (news.diagnostics && !table);
  if (isFirst) { location.reload(); return; }  // what the page has no place for yet
  if (table) table.innerHTML = news.diagnostics;
  if (!news.scene) return;
  replaceScene(news.scene);
  fitSlider();
  showLegend();
  draw();
}

async function ask() {
  if (!document.hidden) {
    try {
      const answer = await fetch(`state${location.search}&version=${encodeURIComponent(version)}`);
      if (answer.status === 200) showNews(await answer.json());
      said.textContent = answer.ok ? LIVE.note : `the run cannot be read: ${await answer.text()}`;
    } catch {
      said.textContent = "The program that served this page has ended.";
      return;
    }
  }
  setTimeout(ask, LIVE.pause);
}

setTimeout(ask, LIVE.pause);
