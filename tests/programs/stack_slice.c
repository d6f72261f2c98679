/* A coroutine whose slice of the stack is copied away and back, as greenlet does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *lo,*hi,save[65536]; static size_t len; static int inside,calls;
void *base_sp; 
// saves callee-saved regs; jumps between main and coroutine
__attribute__((naked,noinline,returns_twice)) int mark(void**p){__asm__("mov %rbx,(%rdi);mov %rbp,8(%rdi);mov %r12,16(%rdi);mov %r13,24(%rdi);mov %r14,32(%rdi);mov %r15,40(%rdi);lea 8(%rsp),%rax;mov %rax,48(%rdi);mov (%rsp),%rax;mov %rax,56(%rdi);xor %eax,%eax;ret");}
__attribute__((naked,noinline,noreturn)) void go(void**p){__asm__("mov (%rdi),%rbx;mov 8(%rdi),%rbp;mov 16(%rdi),%r12;mov 24(%rdi),%r13;mov 32(%rdi),%r14;mov 40(%rdi),%r15;mov 48(%rdi),%rsp;mov $1,%eax;jmp *56(%rdi)");}
static void *m[8],*c[8]; static char scratch[65536];
// restores the slice while running below it, on a scratch stack
__attribute__((naked,noinline,noreturn)) void on_scratch(void(*f)(void)){__asm__("lea scratch_end(%rip),%rsp;and $-16,%rsp;call *%rdi");}
__asm__(".bss;.align 16;.skip 65536;scratch_end:.skip 64;.text");
static void back(void){for(size_t i=0;i<len;i++)lo[i]=save[i];go(c);}
__attribute__((noinline)) static void leave(void){ // coroutine -> main: the slice [lo,hi) goes away
  if(mark(c)==0){lo=c[6];lo-=128;len=hi-lo;for(size_t i=0;i<len;i++)save[i]=lo[i];go(m);} }
static int cmp(const void*a,const void*b){if(calls++==0)leave();return *(int*)a-*(int*)b;}
__attribute__((noinline)) static void coroutine(void){int a[4]={4,2,3,1};qsort(a,4,sizeof*a,cmp);printf("sorted %d %d %d %d\n",a[0],a[1],a[2],a[3]);inside=2;go(m);}
__attribute__((noinline)) static int cmp2(const void*a,const void*b){return strtol("1",0,10)*(*(int*)a-*(int*)b);}
__attribute__((noinline)) static void other(void){char pad[4096];memset(pad,0,sizeof pad);int a[4]={4,2,3,1};qsort(a,4,sizeof*a,cmp2);printf("main goes on %d\n",a[0]+pad[7]);}
int main(void){ hi=__builtin_frame_address(0)-64; hi=(char*)((unsigned long)hi&~15UL);
  volatile int step=0; mark(m); step++;
  if(step==1){hi=m[6];coroutine();}
  if(step==2){other();fflush(stdout);on_scratch(back);}
  printf("end %d\n",inside);return 0;}
