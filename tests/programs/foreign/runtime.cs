// Callbacks from C that collect and throw, and threads that allocate meanwhile.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;

class Left : Exception { public readonly int At; public Left(int at) { At = at; } }

static class Program {
    delegate int Compare(IntPtr a, IntPtr b);
    [DllImport("libc.so.6")] static extern void qsort(int[] numbers, UIntPtr count, UIntPtr size, Compare compare);
    [DllImport("libc.so.6")] static extern UIntPtr strlen(string text);

    static void Sort(int[] numbers, Func<int, int, int> compare) {
        Compare callback = (a, b) => compare(Marshal.ReadInt32(a), Marshal.ReadInt32(b));
        qsort(numbers, (UIntPtr)numbers.Length, (UIntPtr)4, callback);
        GC.KeepAlive(callback);
    }

    static int Thrown(int depth) {
        try {
            if (depth == 0) throw new Left(7);
            return Thrown(depth - 1);
        } catch (Left left) when (depth % 3 == 2) {
            return left.At + depth;
        } finally {
            strlen(new string('x', depth));
        }
    }

    static long Work(int seed) {
        var texts = new List<string>();
        for (int i = 0; i < 3000; i++) {
            texts.Add((seed * (long)i * i).ToString());
            if (i % 500 == 0) GC.Collect(i / 500 % 2);
        }
        return texts.Sum(text => (long)strlen(text));
    }

    static IEnumerable<int> Numbers() { for (int i = 0; i < 500; i++) yield return i * 7919 % 1009; }

    static int Main() {
        var numbers = Numbers().ToArray();
        int calls = 0;
        Sort(numbers, (a, b) => {
            if (++calls % 400 == 0) { GC.Collect(); GC.WaitForPendingFinalizers(); }
            return a.ToString("D6").CompareTo(b.ToString("D6"));
        });
        Console.WriteLine(numbers.SequenceEqual(Numbers().OrderBy(n => n)));
        Console.WriteLine(Enumerable.Range(0, 200).Sum(i => Thrown(i % 10 + 3)));
        var sums = new long[6];
        var threads = sums.Select((_, i) => new Thread(() => sums[i] = Work(i + 1))).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        Console.WriteLine(string.Join(" ", sums));
        Console.WriteLine(Enumerable.Range(1, 40).AsParallel().Select(Work2).Sum());
        try { ((string)null).ToString(); } catch (NullReferenceException) { Console.WriteLine("by a signal"); }
        return 3;
    }

    static long Work2(int n) { return (long)strlen(new string('y', n * 10)); }
}
