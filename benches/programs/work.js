let rows = Array.from({ length: 30000 }, (_, i) => ({ id: i, name: `item ${(i * 7919) % 30011}`, tags: ["a", String(i % 7)] }));
let text = "";
for (let i = 0; i < 5; i++) {
	text = JSON.stringify(rows);
	rows = JSON.parse(text);
}
rows.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
const words = text.match(/item (\d+)/g);
text = text.replace(/"name":"([^"]*)"/g, (_, name) => name.toUpperCase());
console.log(words.length, text.length, rows[0].id, rows[rows.length - 1].id);
