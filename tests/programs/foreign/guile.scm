;; Callbacks from C that collect, errors that leave them, continuations that leave and come back. No threads: with
;; several, guile 3.0.8 breaks by itself in one run of forty.
(use-modules (system foreign) (srfi srfi-1) (rnrs bytevectors))

(define libc (dynamic-link))
(define qsort (pointer->procedure void (dynamic-func "qsort" libc) (list '* size_t size_t '*)))
(define (sorted numbers before)
  (let ((bytes (u8-list->bytevector numbers))
        (compare (procedure->pointer int
                  (lambda (a b) (before (bytevector-u8-ref (pointer->bytevector a 1) 0)
                                        (bytevector-u8-ref (pointer->bytevector b 1) 0)))
                  '(* *))))
    (qsort (bytevector->pointer bytes) (bytevector-length bytes) 1 compare)
    (bytevector->u8-list bytes)))

(define numbers (map (lambda (i) (modulo (* i 97) 251)) (iota 60)))
(define calls 0)
(define (collecting a b)
  (set! calls (+ calls 1))
  (if (zero? (modulo calls 20)) (gc))
  (- (string-length (make-string a #\x)) (string-length (make-string b #\x))))
(format #t "~a\n" (equal? (sort numbers <) (sorted numbers collecting)))

;; An error leaves the callback and qsort.
(define (failing a b) (if (= a b 0) 0 (throw 'left a)))
(format #t "~a\n"
  (count identity
    (map (lambda (i) (catch 'left (lambda () (sorted numbers failing) #f) (lambda _ #t))) (iota 50))))

;; A generator by delimited continuations, which copy the stack of the virtual machine.
(define tag (make-prompt-tag))
(define (walk tree) (if (pair? tree) (for-each walk tree) (abort-to-prompt tag tree)))
(define (leaves tree)
  (let next ((thunk (lambda () (walk tree) '())))
    (call-with-prompt tag thunk (lambda (rest leaf) (cons leaf (next (lambda () (rest #f) '())))))))
(format #t "~a\n" (leaves '(1 (2 (3 4)) ((5)) 6)))

;; One that is entered many times.
(define (entered limit)
  (let* ((times 0) (again (call/cc (lambda (k) k))))
    (set! times (+ times 1))
    (if (< times limit) (again again))
    times))
(format #t "~a\n" (entered 100))

(define (work n)
  (let loop ((i 0) (strings '()))
    (if (= i 8000)
        (apply + (map string-length strings))
        (loop (+ i 1) (cons (number->string (* n i i i)) strings)))))
(format #t "~a\n" (map work (iota 4 1)))
(format #t "~a\n" (string-length (number->string (expt 7 20000))))
