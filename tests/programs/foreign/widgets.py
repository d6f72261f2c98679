# Python called from Qt's event loop: events, timers, threads with loops of their own, exceptions, collections.
import gc, sys
from PyQt5.QtCore import QObject, QThread, QTimer, Qt, pyqtSignal, QCoreApplication, QSortFilterProxyModel, QStringListModel
from PyQt5.QtGui import QImage, QPainter
from PyQt5.QtWidgets import QApplication, QListView, QPushButton, QVBoxLayout, QWidget

sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__)
app = QApplication(["widgets"])
counts = {"painted": 0, "clicked": 0, "told": 0, "compared": 0}

class Window(QWidget):
    def paintEvent(self, event):
        counts["painted"] += 1
        painter = QPainter(self)
        painter.drawEllipse(0, 0, 40, 40)
        painter.end()

class Worker(QThread):
    told = pyqtSignal(int)
    def run(self):
        for i in range(50):
            gc.collect(0)
            self.told.emit(len(QImage(i + 1, 2, QImage.Format_RGB32).mirrored().text()) + i)

class Sorted(QSortFilterProxyModel):
    def lessThan(self, a, b):
        counts["compared"] += 1
        if counts["compared"] % 100 == 0:
            gc.collect()
        return self.sourceModel().data(a, Qt.DisplayRole) < self.sourceModel().data(b, Qt.DisplayRole)

window = Window()
button, view = QPushButton("b"), QListView()
layout = QVBoxLayout(window)
layout.addWidget(button), layout.addWidget(view)
model = Sorted()
model.setSourceModel(QStringListModel([str(i * 37 % 101) for i in range(100)]))
view.setModel(model)
model.sort(0)
def clicked():
    counts["clicked"] += 1
    QCoreApplication.processEvents()  # a loop in a callback of the loop
    if counts["clicked"] == 3:
        raise ValueError("left")
button.clicked.connect(clicked)
window.show()
image = window.grab().toImage()
workers = [Worker() for _ in range(4)]
def told(number):
    counts["told"] += number
for worker in workers:
    worker.told.connect(told)
    worker.start()
done = []
def step():
    button.click()
    done.append(gc.collect() >= 0)
    if len(done) == 5:
        for worker in workers:
            worker.wait()
        QTimer.singleShot(20, app.quit)
    else:
        QTimer.singleShot(1, step)
QTimer.singleShot(0, step)
status = app.exec_()
print(status, counts["painted"] > 0, counts["clicked"], counts["told"], counts["compared"] > 100, image.width() > 0)
print([model.data(model.index(i, 0)) for i in range(3)])
