"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = [...document.querySelectorAll("#table tbody tr")];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const BOUND = "#3b7dd8", TRAFFIC = "#d9652b";
  const options = { displayModeBar: false, responsive: true };

  // Plotly writes a little HTML in its texts; names come from files.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text) => (text.length > 28 ? text.slice(0, 13) + "\u2026" + text.slice(-13) : text);

  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), size: 12 },
    margin: { l: 70, r: 15, t: 30, b: 60 },
    legend: { orientation: "h", x: 0, y: 1.1 },
    ...more,
  });
  const axis = (title, more) => ({
    title: { text: title, standoff: 8 },
    gridcolor: colour("--line"),
    ...more,
  });

  const UNITS = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  function brief(words) {
    const [scale, unit] = UNITS.find(([size]) => words >= size) || [1, ""];
    return Number((words / scale).toPrecision(3)).toString() + unit;
  }
  // Plotly's own labels on a log axis leave the power out, and its range of equal values is empty.
  function logAxis(title, values, more) {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return axis(title, more);
    const low = Math.min(...positive) / 1.15, high = Math.max(...positive) * 1.15;
    const steps = high / low < 12 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] : high / low < 1e3 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low && tick <= high));
    }
    return axis(title, {
      type: "log", range: [Math.log10(low), Math.log10(high)], tickvals: ticks, ticktext: ticks.map(brief), ...more,
    });
  }

  function drawLayers() {
    const names = data.layers.map((layer) => plain(layer.name));
    const texts = data.layers.map((layer) => plain(short(layer.name)));
    const dots = (key, name, symbol, color) => ({
      type: "scatter", mode: "markers", name, x: names, y: data.layers.map((layer) => layer[key]),
      marker: { color, size: 10, symbol, line: { color, width: 2 } },
      hovertemplate: "%{x}<br>%{y:,} words<extra>" + name + "</extra>",
    });
    Plotly.react("layers", [
      dots("traffic", "traffic of the best tiling", "circle", TRAFFIC),
      dots("bound", "lower bound", "line-ew-open", BOUND),
    ], layout({
      xaxis: axis("", { type: "category", tickangle: -45, automargin: true, tickvals: names, ticktext: texts }),
      yaxis: logAxis("words moved", data.layers.flatMap((layer) => [layer.bound, layer.traffic])),
    }), options);
  }

  function drawCurve(layer) {
    const line = (key, name, color) => ({
      type: "scatter", mode: "lines+markers", name, x: layer.curve.capacity, y: layer.curve[key],
      line: { color }, marker: { color, size: 6 },
      hovertemplate: "%{x:,} words of fast memory<br>%{y:,} words<extra>" + name + "</extra>",
    });
    const rule = (more) => ({ type: "line", line: { color: colour("--soft"), dash: "dot", width: 1.5 }, ...more });
    Plotly.react("curve", [
      line("traffic", "traffic of the best tiling", TRAFFIC),
      line("bound", "lower bound", BOUND),
    ], layout({
      xaxis: logAxis("fast memory, words", layer.curve.capacity, {
        tickvals: layer.curve.capacity, ticktext: layer.curve.capacity.map(brief),
      }),
      yaxis: logAxis("words moved", [...layer.curve.traffic, ...layer.curve.bound, layer.compulsory]),
      shapes: [
        ...(layer.compulsory ? [rule({ xref: "paper", x0: 0, x1: 1, y0: layer.compulsory, y1: layer.compulsory })] : []),
        rule({ yref: "paper", y0: 0, y1: 1, x0: layer.capacity, x1: layer.capacity }),
      ],
      annotations: [
        ...(layer.compulsory
          ? [{ xref: "paper", x: 0, y: Math.log10(layer.compulsory), text: "compulsory", showarrow: false, xanchor: "left", yanchor: "bottom" }]
          : []),
        { yref: "paper", y: 1, x: Math.log10(layer.capacity), text: "this report", showarrow: false, xanchor: "left", yanchor: "top" },
      ],
    }), options);
  }

  function choose(index) {
    data.selected = index;
    const layer = data.layers[index];
    document.getElementById("chosen").textContent = layer.name + ", " + layer.shape;
    rows.forEach((row) => row.classList.toggle("chosen", Number(row.dataset.index) === index));
    drawCurve(layer);
  }

  function draw() {
    drawLayers();
    if (data.selected !== null) choose(data.selected);
  }

  const value = (cell) => (cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value));
  function sortBy(column, header) {
    const down = header.getAttribute("aria-sort") === "ascending";
    document.querySelectorAll("#table thead th").forEach((th) => th.setAttribute("aria-sort", "none"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => {
      const [x, y] = [value(a.children[column]), value(b.children[column])];
      const order = typeof x === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true });
      return down ? -order : order;
    });
    document.querySelector("#table tbody").append(...rows);
  }

  rows.forEach((row) => row.addEventListener("click", () => choose(Number(row.dataset.index))));
  document.querySelectorAll("#table thead th").forEach((header, column) =>
    header.addEventListener("click", () => sortBy(column, header)));
  draw();
  document.getElementById("layers").on("plotly_click", (event) => choose(event.points[0].pointNumber));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
