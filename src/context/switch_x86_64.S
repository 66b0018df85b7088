// The context switch for x86-64 (System V ABI): everything that depends on this CPU.
//
//   lev_context_switch(void** save, void* load)   leave this stack, continue on that one
//   lev_context_hop(void** save, void** load)     the same, control words left alone
//   lev_context_prepare(void* top, run, self)     lay out a first frame; returns the value to load
//   lev_context_start                             the bottom frame of every context
//
// A suspended context is a frame of 64 bytes on its own stack, from the saved stack pointer up:
//
//   +0 mxcsr   +4 x87 control word   +8 r15   +16 r14   +24 r13   +32 r12   +40 rbx   +48 rbp
//   +56 return address
//
// These are exactly what the ABI makes a callee preserve; the compiler keeps the rest out of
// registers around the call. The switch ends in `ret`, so that the CPU's return predictor stays in
// step with the calls: with `jmp` a node of a list takes 52 ns in place of 24, four frames deep.
// Control words are loaded unconditionally: comparing them first to skip the load costs 25-27
// cycles where this costs 19 (EPYC family 26, README).
//
// There is no GNU property note on purpose: without it the linker does not mark the program as
// fit for shadow stacks, which a stack switch of this kind would break.

#if defined(__x86_64__)

    .text

    .p2align 5
    .globl lev_context_switch
    .protected lev_context_switch
    .type lev_context_switch, @function
lev_context_switch:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0
    leaq -8(%rsp), %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw 4(%rsp)

    movq %rsp, (%rdi)
    ldmxcsr (%rsi)
    fldcw 4(%rsi)
    // From here on the other stack is unwound. Its frame has the same shape: the rules still hold.
    leaq 8(%rsi), %rsp
    .cfi_adjust_cfa_offset -8

    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size lev_context_switch, . - lev_context_switch

    // The same without the control words, for contexts that all share the thread's. The frame
    // begins with r15, which is lev_context_hop_skip_bytes further up. *load is read after *save is
    // written: a hop to oneself comes back.
    .p2align 5
    .globl lev_context_hop
    .protected lev_context_hop
    .type lev_context_hop, @function
lev_context_hop:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0

    movq %rsp, (%rdi)
    // From here on the other stack is unwound. Its frame has the same shape: the rules still hold.
    movq (%rsi), %rsp

    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size lev_context_hop, . - lev_context_hop

    // rdi: the top of the stack, 16-byte aligned; rsi: run(self); rdx: self. Two zero words above
    // the frame end the walk of a debugger that follows return addresses or frame pointers. The
    // control words are those of the caller, as a new thread inherits those of its creator.
    .p2align 4
    .globl lev_context_prepare
    .protected lev_context_prepare
    .type lev_context_prepare, @function
lev_context_prepare:
    .cfi_startproc
    leaq -80(%rdi), %rax
    leaq lev_context_start(%rip), %rcx
    stmxcsr (%rax)
    fnstcw 4(%rax)
    movq $0, 8(%rax)
    movq $0, 16(%rax)
    movq $0, 24(%rax)
    movq %rdx, 32(%rax)
    movq %rsi, 40(%rax)
    movq $0, 48(%rax)
    movq %rcx, 56(%rax)
    movq $0, 64(%rax)
    movq $0, 72(%rax)
    ret
    .cfi_endproc
    .size lev_context_prepare, . - lev_context_prepare

    // The first switch to a context returns to here, with rbx = run and r12 = self. An undefined
    // return address tells the unwinder that the stack ends: an exception that nothing caught
    // then ends in std::terminate. The nop is there because unwinders look up the byte before a
    // return address.
    .p2align 4
    .type lev_context_start, @function
    .cfi_startproc
    .cfi_undefined rip
    nop
lev_context_start:
    movq %r12, %rdi
    call *%rbx
    ud2
    .cfi_endproc
    .size lev_context_start, . - lev_context_start

    .section .rodata
    .p2align 3
    .globl lev_context_hop_skip_bytes
    .protected lev_context_hop_skip_bytes
    .type lev_context_hop_skip_bytes, @object
    .size lev_context_hop_skip_bytes, 8
lev_context_hop_skip_bytes:
    .quad 8

#endif

    .section .note.GNU-stack, "", %progbits
