// Words that headers of other libraries define: of Qt, of X11, and as the Linux kernel has them.
#define emit
#define forever for (;;)
#define foreach(one, all) for (one : all)
#define signals public
#define slots

#define Always 2
#define Bool int
#define False 0
#define None 0L
#define Status int
#define Success 0
#define True 1

#define barrier() __asm__ volatile("" ::: "memory")
#define likely(x) __builtin_expect(!!(x), 1)
#define major(x) (x)
#define minor(x) (x)
#define unlikely(x) __builtin_expect(!!(x), 0)

#include <leveret/cell.hpp>
#include <leveret/coroutine.hpp>
#include <leveret/interleave_flat.hpp>
#include <leveret/leveret.hpp>
#include <leveret/look.hpp>
