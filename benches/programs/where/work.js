"use strict";
// Compiled code, the garbage collector, regular expressions, and the library's own C++ by zlib.
const { deflateSync } = require("zlib");
let sum = 0;
for (let round = 0; round < 16; round++) {
	const rows = Array.from({ length: 40000 }, (_, i) => ({ id: i, name: `item ${(i * 7919) % 40009}` }));
	rows.sort((a, b) => (a.name < b.name ? -1 : 1));
	const text = JSON.stringify(rows);
	sum += text.replace(/item (\d+)/g, (_, n) => n).length;
	sum += deflateSync(text.slice(0, 700000)).length;
	for (let i = 0, x = round; i < 20e6; i++) { x = (x * 1103515245 + 12345) & 0x7fffffff; sum += x & 1; }
}
console.log(sum > 0);
