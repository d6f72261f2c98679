;; Compiled by way of C that never returns: the stack is the youngest generation, emptied by a longjmp when it is full.
(import (chicken base) (chicken gc) (chicken condition) (chicken sort) (chicken format) (chicken foreign) (chicken process-context)
        srfi-4)
(foreign-declare "#include <stdlib.h>\n#include <string.h>\n")
(define-external (compare (c-pointer a) (c-pointer b)) int
  (set! calls (+ calls 1))
  (if (zero? (modulo calls 50)) (gc #t))
  (let ((at (foreign-lambda* int ((c-pointer p)) "C_return(*(int *)p);")))
    (- (string-length (make-string (at a) #\x)) (string-length (make-string (at b) #\x)))))
(define calls 0)
(define qsort
  (foreign-safe-lambda* void ((s32vector numbers) (int count)) "
    extern int compare(void *, void *);
    int *copy = malloc(count * sizeof *copy);
    memcpy(copy, numbers, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, (int (*)(const void *, const void *))compare);
    printf(\"%d %d\\n\", copy[0], copy[count - 1]);
    fflush(stdout);
    free(copy);"))
(define numbers (let loop ((i 0)) (if (= i 100) '() (cons (modulo (* i 7919) 1009) (loop (+ i 1))))))
(qsort (list->s32vector numbers) 100)
(printf "~a\n" (> calls 100))

(define strlen (foreign-lambda int "strlen" c-string))
(define (total n) (let loop ((i 0) (sum 0)) (if (= i n) sum (loop (+ i 1) (+ sum (strlen (number->string (* i i))))))))
(printf "~a\n" (total 100000))

(define again #f)
(define times 0)
(call/cc (lambda (k) (set! again k)))
(set! times (+ times 1))
(if (< times 1000) (again #f))
(printf "~a\n" times)

(define (failing n) (if (= n 0) (abort 'left) (+ 1 (failing (- n 1)))))
(define (caught n) (call/cc (lambda (k) (with-exception-handler (lambda (e) (k 1)) (lambda () (failing (modulo n 100)))))))
(printf "~a\n" (let loop ((i 0) (sum 0)) (if (= i 1000) sum (loop (+ i 1) (+ sum (caught i))))))
(define (deep n) (if (= n 0) 0 (+ 1 (deep (- n 1)))))
(printf "~a\n" (deep 1000000))
(printf "~a\n" (length (sort (let loop ((i 0)) (if (= i 20000) '() (cons (number->string i) (loop (+ i 1))))) string<?)))
(exit 3)
