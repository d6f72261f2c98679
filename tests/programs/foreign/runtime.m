% Callbacks from numeric libraries, errors that leave them as C++ exceptions, objects on a shared heap.
function r = counted (x)
  r = exp (-x .^ 2);
end
function r = failing (x)
  error ("left:here", "left");
end
printf ("%.6f\n", quad (@counted, -3, 3));
left = 0;
for i = 1:100
  try
    quad (@failing, 0, 1);
  catch err
    left += strcmp (err.identifier, "left:here");
  end
end
printf ("%d\n", left);
printf ("%.4f\n", fzero (@(x) cos (x) - x, [0, 1]));
m = reshape (mod ((1:3600) * 7919, 1009), 60, 60) + 1000 * eye (60);
printf ("%.4f %.4f\n", trace (inv (m) * m), sum (svd (m)) / 1000);
c = cellfun (@(s) regexprep (s, 'a+', '<$0>'), {"aab", "b", "caa"}, "UniformOutput", false);
printf ("%s ", c{:}); printf ("\n");
unwind_protect
  x = arrayfun (@(n) numel (num2str (n ^ 3)), 1:500);
unwind_protect_cleanup
  printf ("%d\n", sum (x));
end_unwind_protect
[t, y] = ode45 (@(t, y) -y, [0, 1], 1);
printf ("%.3f\n", y(end));
exit (3);
