(* Exceptions through C code that calls back, collections in it, and threads. *)
exception Left of int

let compare_collecting calls a b =
  incr calls;
  if !calls mod 500 = 0 then Gc.full_major ();
  compare (string_of_int a) (string_of_int b)

let () =
  let numbers = List.init 1000 (fun i -> i * 7919 mod 10007) in
  let sorted = List.sort (compare_collecting (ref 0)) numbers in
  Printf.printf "%d %d\n" (List.hd sorted) (List.length sorted);
  let left = ref 0 in
  for i = 1 to 300 do
    let forced = Hashtbl.create 7 in
    Hashtbl.add forced i "x";
    try Hashtbl.iter (fun key _ -> raise (Left key)) forced with Left key -> left := !left + key
  done;
  Printf.printf "%d\n" !left;
  let finalised = ref 0 in
  for i = 1 to 100 do Gc.finalise (fun _ -> incr finalised) (Bytes.create (i * 100)) done;
  Gc.compact ();
  Printf.printf "%b\n" (!finalised > 90);
  let rec deep n = if n = 0 then 0 else 1 + deep (n - 1) in
  Printf.printf "%s\n" (try ignore (deep 100_000_000); "deep" with Stack_overflow -> "overflow");
  let text = Marshal.to_string (List.init 5000 string_of_int) [] in
  Printf.printf "%d\n" (List.length (Marshal.from_string text 0 : string list));
  (try ignore (int_of_string "x") with Failure _ -> print_endline "failure");
  let alarms = ref 0 in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> incr alarms; if !alarms = 3 then raise (Left 3)));
  (try for _ = 1 to 10 do Unix.kill (Unix.getpid ()) Sys.sigusr1; ignore (Sys.opaque_identity (ref 0)) done
   with Left n -> Printf.printf "left %d\n" n);
  let sums = Array.make 4 0 in
  let work n =
    for i = 1 to 20000 do
      sums.(n) <- sums.(n) + String.length (string_of_int (n * i * i));
      if i mod 5000 = 0 then (Gc.minor (); Thread.yield ())
    done in
  List.iter Thread.join (List.init 4 (Thread.create work));
  Array.iter (Printf.printf "%d ") sums;
  print_newline ();
  exit 3
