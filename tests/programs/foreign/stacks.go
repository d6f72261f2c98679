// Goroutines whose stacks grow (by segments, where they are split) across calls into C, panics, collections.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
)

//extern strlen
func strlen(text *byte) uint64

func deep(n int) uint64 {
	var room [200]byte
	room[n%199] = 'x'
	if n == 0 {
		return strlen(&room[0])
	}
	return deep(n-1) + strlen(&room[n%199])
}

func caught(n int) (sum int) {
	defer func() {
		if why := recover(); why != nil {
			sum += why.(int)
		}
	}()
	if n%3 == 0 {
		panic(deepPanic(n % 50))
	}
	var none []int
	return none[n]*0 + 1
}

func deepPanic(n int) int {
	if n == 0 {
		return 1
	}
	return deepPanic(n-1) + 1
}

func index(n int) (sum int) {
	defer func() {
		if _, is := recover().(runtime.Error); is {
			sum = n
		}
	}()
	var none []int
	return none[n]
}

func main() {
	var group sync.WaitGroup
	sums := make([]uint64, 64)
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for j := 0; j < 20; j++ {
				sums[i] += deep(10 * (i + j))
				runtime.Gosched()
				if j == i%20 {
					runtime.GC()
				}
			}
		}(i)
	}
	group.Wait()
	var sum uint64
	for _, s := range sums {
		sum += s
	}
	fmt.Println(sum)
	thrown := 0
	for i := 0; i < 300; i++ {
		if i%3 == 0 {
			thrown += caught(i)
		}
		thrown += index(i)
	}
	fmt.Println(thrown)
	words := make([]string, 2000)
	for i := range words {
		words[i] = fmt.Sprintf("%05d", i*7919%10007)
	}
	sort.Slice(words, func(a, b int) bool { return words[a] < words[b] })
	fmt.Println(words[0], words[1999])
	in, out := make(chan int), make(chan int, 3)
	for i := 0; i < 8; i++ {
		go func() {
			for n := range in {
				out <- n * n
			}
		}()
	}
	go func() {
		for i := 0; i < 5000; i++ {
			in <- i
		}
		close(in)
	}()
	squares := 0
	for i := 0; i < 5000; i++ {
		squares += <-out
	}
	fmt.Println(squares)
	os.Exit(3)
}
