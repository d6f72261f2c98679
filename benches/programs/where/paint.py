"""Paints curves, gradients and text into an image, with Qt and without a screen."""
import math
import os

os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PyQt5.QtCore import QPointF, QRectF, Qt
from PyQt5.QtGui import (QColor, QGuiApplication, QImage, QLinearGradient, QPainter, QPainterPath,
                         QPen, QTransform)

application = QGuiApplication([])
image = QImage(900, 700, QImage.Format_ARGB32_Premultiplied)
checksum = 0
for frame in range(60):
    image.fill(Qt.white)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.Antialiasing)
    gradient = QLinearGradient(0, 0, 900, 700)
    gradient.setColorAt(0, QColor.fromHsv(frame * 6 % 360, 200, 255))
    gradient.setColorAt(1, Qt.white)
    painter.fillRect(QRectF(0, 0, 900, 700), gradient)
    for curve in range(30):
        path = QPainterPath(QPointF(0, 20 * curve))
        for x in range(0, 900, 30):
            path.quadTo(x + 15, 20 * curve + 60 * math.sin(x + frame), x + 30, 20 * curve)
        painter.setPen(QPen(QColor.fromHsv(curve * 12, 255, 180, 120), 3))
        painter.drawPath(path)
    painter.setPen(Qt.black)
    for line in range(20):
        painter.drawText(20, 30 + 30 * line, "What is painted is never seen. " * 3 + str(frame))
    painter.end()
    turned = image.transformed(QTransform().rotate(7), Qt.SmoothTransformation)
    checksum += turned.scaled(450, 350, Qt.IgnoreAspectRatio, Qt.SmoothTransformation).pixel(200, 150)
print(checksum)
