// The context switch for AArch64 (AAPCS64): everything that depends on this CPU.
//
//   lev_context_switch(void** save, void* load)   leave this stack, continue on that one
//   lev_context_hop(void** save, void** load)     the same, fpcr left alone
//   lev_context_prepare(void* top, run, self)     lay out a first frame; returns the value to load
//   lev_context_start                             the bottom frame of every context
//
// A suspended context is a frame of 176 bytes on its own stack, from the saved stack pointer up:
//
//   +0 d8-d15   +64 x19-x28   +144 x29 (frame pointer)   +152 x30 (return address)   +160 fpcr
//
// These are exactly what the ABI makes a callee preserve (of v8-v15 the low halves only). The
// switch ends in `ret` through x30, so that the CPU's return predictor stays in step with the
// calls. Writing fpcr drains the pipeline of many cores, so it is written only where it differs.

#if defined(__aarch64__)

    .text

    .p2align 5
    .globl lev_context_switch
    .protected lev_context_switch
    .type lev_context_switch, %function
lev_context_switch:
    .cfi_startproc
    sub sp, sp, #176
    .cfi_def_cfa_offset 176
    stp d8, d9, [sp, #0]
    .cfi_rel_offset d8, 0
    .cfi_rel_offset d9, 8
    stp d10, d11, [sp, #16]
    .cfi_rel_offset d10, 16
    .cfi_rel_offset d11, 24
    stp d12, d13, [sp, #32]
    .cfi_rel_offset d12, 32
    .cfi_rel_offset d13, 40
    stp d14, d15, [sp, #48]
    .cfi_rel_offset d14, 48
    .cfi_rel_offset d15, 56
    stp x19, x20, [sp, #64]
    .cfi_rel_offset x19, 64
    .cfi_rel_offset x20, 72
    stp x21, x22, [sp, #80]
    .cfi_rel_offset x21, 80
    .cfi_rel_offset x22, 88
    stp x23, x24, [sp, #96]
    .cfi_rel_offset x23, 96
    .cfi_rel_offset x24, 104
    stp x25, x26, [sp, #112]
    .cfi_rel_offset x25, 112
    .cfi_rel_offset x26, 120
    stp x27, x28, [sp, #128]
    .cfi_rel_offset x27, 128
    .cfi_rel_offset x28, 136
    stp x29, x30, [sp, #144]
    .cfi_rel_offset x29, 144
    .cfi_rel_offset x30, 152
    mrs x9, fpcr
    str x9, [sp, #160]

    mov x10, sp
    str x10, [x0]
    // From here on the other stack is unwound. Its frame has the same shape: the rules still hold.
    mov sp, x1

    ldr x10, [sp, #160]
    cmp x9, x10
    b.eq 1f
    msr fpcr, x10
1:
    ldp d8, d9, [sp, #0]
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp x19, x20, [sp, #64]
    ldp x21, x22, [sp, #80]
    ldp x23, x24, [sp, #96]
    ldp x25, x26, [sp, #112]
    ldp x27, x28, [sp, #128]
    ldp x29, x30, [sp, #144]
    add sp, sp, #176
    .cfi_def_cfa_offset 0
    .cfi_restore d8
    .cfi_restore d9
    .cfi_restore d10
    .cfi_restore d11
    .cfi_restore d12
    .cfi_restore d13
    .cfi_restore d14
    .cfi_restore d15
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size lev_context_switch, . - lev_context_switch

    // The same without fpcr, for contexts that all share the thread's. The frame is the same one,
    // so lev_context_hop_skip_bytes is 0. *load is read after *save is written: a hop to oneself
    // comes back.
    .p2align 5
    .globl lev_context_hop
    .protected lev_context_hop
    .type lev_context_hop, %function
lev_context_hop:
    .cfi_startproc
    sub sp, sp, #176
    .cfi_def_cfa_offset 176
    stp d8, d9, [sp, #0]
    .cfi_rel_offset d8, 0
    .cfi_rel_offset d9, 8
    stp d10, d11, [sp, #16]
    .cfi_rel_offset d10, 16
    .cfi_rel_offset d11, 24
    stp d12, d13, [sp, #32]
    .cfi_rel_offset d12, 32
    .cfi_rel_offset d13, 40
    stp d14, d15, [sp, #48]
    .cfi_rel_offset d14, 48
    .cfi_rel_offset d15, 56
    stp x19, x20, [sp, #64]
    .cfi_rel_offset x19, 64
    .cfi_rel_offset x20, 72
    stp x21, x22, [sp, #80]
    .cfi_rel_offset x21, 80
    .cfi_rel_offset x22, 88
    stp x23, x24, [sp, #96]
    .cfi_rel_offset x23, 96
    .cfi_rel_offset x24, 104
    stp x25, x26, [sp, #112]
    .cfi_rel_offset x25, 112
    .cfi_rel_offset x26, 120
    stp x27, x28, [sp, #128]
    .cfi_rel_offset x27, 128
    .cfi_rel_offset x28, 136
    stp x29, x30, [sp, #144]
    .cfi_rel_offset x29, 144
    .cfi_rel_offset x30, 152

    mov x10, sp
    str x10, [x0]
    // From here on the other stack is unwound. Its frame has the same shape: the rules still hold.
    ldr x10, [x1]
    mov sp, x10

    ldp d8, d9, [sp, #0]
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp x19, x20, [sp, #64]
    ldp x21, x22, [sp, #80]
    ldp x23, x24, [sp, #96]
    ldp x25, x26, [sp, #112]
    ldp x27, x28, [sp, #128]
    ldp x29, x30, [sp, #144]
    add sp, sp, #176
    .cfi_def_cfa_offset 0
    .cfi_restore d8
    .cfi_restore d9
    .cfi_restore d10
    .cfi_restore d11
    .cfi_restore d12
    .cfi_restore d13
    .cfi_restore d14
    .cfi_restore d15
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size lev_context_hop, . - lev_context_hop

    // x0: the top of the stack, 16-byte aligned; x1: run(self); x2: self. Two zero words above the
    // frame and a zero x29 end the walk of a debugger that follows frame pointers. fpcr is that of
    // the caller, as a new thread inherits that of its creator.
    .p2align 4
    .globl lev_context_prepare
    .protected lev_context_prepare
    .type lev_context_prepare, %function
lev_context_prepare:
    .cfi_startproc
    sub x0, x0, #192
    stp xzr, xzr, [x0, #0]
    stp xzr, xzr, [x0, #16]
    stp xzr, xzr, [x0, #32]
    stp xzr, xzr, [x0, #48]
    stp x1, x2, [x0, #64]
    stp xzr, xzr, [x0, #80]
    stp xzr, xzr, [x0, #96]
    stp xzr, xzr, [x0, #112]
    stp xzr, xzr, [x0, #128]
    adr x9, lev_context_start
    stp xzr, x9, [x0, #144]
    mrs x9, fpcr
    stp x9, xzr, [x0, #160]
    stp xzr, xzr, [x0, #176]
    ret
    .cfi_endproc
    .size lev_context_prepare, . - lev_context_prepare

    // The first switch to a context returns to here, with x19 = run and x20 = self. An undefined
    // return address tells the unwinder that the stack ends: an exception that nothing caught
    // then ends in std::terminate. The nop is there because unwinders look up the byte before a
    // return address.
    .p2align 4
    .type lev_context_start, %function
    .cfi_startproc
    .cfi_undefined x30
    nop
lev_context_start:
    mov x0, x20
    blr x19
    brk #1
    .cfi_endproc
    .size lev_context_start, . - lev_context_start

    .section .rodata
    .p2align 3
    .globl lev_context_hop_skip_bytes
    .protected lev_context_hop_skip_bytes
    .type lev_context_hop_skip_bytes, %object
    .size lev_context_hop_skip_bytes, 8
lev_context_hop_skip_bytes:
    .quad 0

#endif

    .section .note.GNU-stack, "", %progbits
