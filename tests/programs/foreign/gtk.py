# Closures called from GLib's main loop, through libffi: signals, idle sources, threads, a loop in a loop.
import gc, threading
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gio, Gtk

counts = {"placed": 0, "clicked": 0, "idle": 0, "compared": 0, "read": 0}
window = Gtk.Window(title="chase")
box, area, button = Gtk.Box(), Gtk.DrawingArea(), Gtk.Button(label="b")
area.set_size_request(60, 40)
box.add(area), box.add(button), window.add(box)

def placed(widget, place):
    counts["placed"] += 1
    gc.collect()
area.connect("size-allocate", placed)

store = Gtk.ListStore(str)
for i in range(100):
    store.append([str(i * 37 % 101)])
def compare(model, a, b, data):
    counts["compared"] += 1
    a, b = model[a][0], model[b][0]
    return (a > b) - (a < b)
store.set_sort_func(0, compare, None)
store.set_sort_column_id(0, Gtk.SortType.ASCENDING)

def clicked(widget):
    counts["clicked"] += 1
    inner = GLib.MainLoop()
    GLib.timeout_add(1, inner.quit)
    inner.run()
button.connect("clicked", clicked)

def work():
    for _ in range(100):
        def idle():
            counts["idle"] += 1
            return False
        GLib.idle_add(idle)
threads = [threading.Thread(target=work) for _ in range(4)]

def loaded(file, result):
    counts["read"] += len(file.load_contents_finish(result)[1])
Gio.File.new_for_path(__file__).load_contents_async(None, loaded)

steps = []
def step():
    button.clicked()
    steps.append(1)
    if len(steps) < 5 or counts["idle"] < 400 or not counts["placed"] or not counts["read"]:
        return True
    Gtk.main_quit()
    return False
window.show_all()
for thread in threads:
    thread.start()
GLib.timeout_add(5, step)
Gtk.main()
for thread in threads:
    thread.join()
try:
    Gio.File.new_for_path("/nowhere").load_contents(None)
except GLib.Error as error:
    print(error.code)
print(counts["placed"] > 0, counts["clicked"] >= 5, counts["idle"], counts["compared"] > 100, counts["read"])
print([row[0] for row in store][:3])
window.destroy()
