;;; Callbacks from C, left by non-local exits; collections that stop the threads, wherever they are in C.
(defun sorted (numbers compare)
  (let ((n (length numbers)))
    (sb-alien:with-alien ((a (* int) (sb-alien:make-alien int n)))
      (loop for i from 0 for x in numbers do (setf (sb-alien:deref a i) x))
      (unwind-protect
           (progn
             (sb-alien:alien-funcall
              (sb-alien:extern-alien "qsort" (function sb-alien:void (* int) sb-alien:unsigned-long sb-alien:unsigned-long sb-sys:system-area-pointer))
              a n 4 compare)
             (loop for i below n collect (sb-alien:deref a i)))
        (sb-alien:free-alien a)))))

(defvar *calls* 0)
(defvar *action* #'identity)
(defparameter *compare*
  (sb-alien:alien-sap
   (sb-alien::alien-lambda sb-alien:int ((a (* sb-alien:int)) (b (* sb-alien:int)))
     (incf *calls*)
     (funcall *action* *calls*)
     (- (sb-alien:deref a) (sb-alien:deref b)))))

(let ((numbers (loop for i below 300 collect (mod (* i 7919) 1009))))
  (let ((*action* (lambda (n) (when (zerop (mod n 200)) (sb-ext:gc)) (make-string 100))))
    (format t "~a~%" (equal (sorted numbers *compare*) (sort (copy-list numbers) #'<))))
  (format t "~a~%"
          (loop for i below 300
                sum (let ((*action* (lambda (n) (declare (ignore n)) (throw 'left 1)))) (catch 'left (sorted numbers *compare*) 0))))
  (format t "~a~%"
          (loop for i below 100
                count (let ((*action* (lambda (n) (declare (ignore n)) (error "left"))))
                        (handler-case (sorted numbers *compare*) (error () t))))))

(defun work (seed)
  (let ((strings nil))
    (dotimes (i 20000)
      (push (princ-to-string (* seed i i)) strings)
      (when (zerop (mod i 10000)) (sb-ext:gc)))
    (reduce #'+ strings :key #'length)))

(if (find :sb-thread *features*)
    (format t "~a~%"
            (mapcar #'sb-thread:join-thread
                    (loop for n from 1 to 6 collect (let ((n n)) (sb-thread:make-thread (lambda () (work n))))))))
(sb-ext:gc :full t)
(format t "~a~%" (handler-case (/ 1 (length (list))) (division-by-zero () "by zero")))
(format t "~a~%" (handler-case (sb-ext:with-timeout 0.05 (loop (work 1))) (sb-ext:timeout () "in time")))
(finish-output)
(sb-ext:exit :code 3 :abort nil)
