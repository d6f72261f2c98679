;;; Collections while C code sorts and searches, non-local exits from it, threads with stacks of their own.  -*- lexical-binding: t -*-
(require 'generator)
(require 'cl-lib)
(setq gc-cons-threshold 100000)

(let* ((numbers (cl-loop for i below 2000 collect (% (* i 7919) 10007)))
       (calls 0)
       (sorted (sort (copy-sequence numbers)
                     (lambda (a b)
                       (when (zerop (% (cl-incf calls) 3000)) (garbage-collect))
                       (string< (format "%06d" a) (format "%06d" b))))))
  (princ (format "%s\n" (equal sorted (sort numbers #'<)))))

(princ (format "%d\n"
               (cl-loop for i below 300
                        sum (catch 'left (mapcar (lambda (x) (if (= x 3) (throw 'left x) x)) '(1 2 3 4)) 0))))
(princ (format "%d\n"
               (cl-loop for i below 300
                        count (condition-case nil
                                  (unwind-protect (sort (list 3 1 2) (lambda (_a _b) (error "left"))) (format "%d" i))
                                (error t)))))

(iter-defun numbers (n) (dotimes (i n) (iter-yield (* i i))))
(princ (format "%d\n" (let ((sum 0)) (iter-do (n (numbers 100)) (cl-incf sum n)) sum)))

(let* ((lock (make-mutex))
       (sums nil)
       (work (lambda (n)
               (let ((strings nil))
                 (dotimes (i 500)
                   (push (format "%d" (* n i i)) strings)
                   (when (zerop (% i 100)) (thread-yield) (garbage-collect)))
                 (with-mutex lock (push (apply #'+ (mapcar #'length strings)) sums)))))
       (threads (mapcar (lambda (n) (make-thread (lambda () (funcall work n)))) '(1 2 3 4 5 6))))
  (mapc #'thread-join threads)
  (princ (format "%s\n" (sort sums #'<))))

(with-temp-buffer
  (dotimes (i 2000) (insert (format "line %d\n" i)))
  (goto-char (point-min))
  (princ (format "%d\n" (cl-loop while (re-search-forward "\\([0-9]+\\)7$" nil t) count t)))
  (princ (format "%s %d\n" (secure-hash 'sha256 (current-buffer))
                 (call-process-region (point-min) (point-max) "wc" nil nil nil "-l"))))
(kill-emacs 3)
