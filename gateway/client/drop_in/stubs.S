// SPDX-License-Identifier: Apache-2.0
// The exported functions of a drop-in library: each jumps through a slot of its own, with every
// argument as it came. A slot that is empty yet is filled by rocegw_find_target (forward.cc).
// ROCEGW_STUBS names the generated list.
#if !defined(__x86_64__) || defined(__ILP32__)
#error "the drop-in libraries know the calling convention of 64-bit x86 only"
#endif

#define ROCEGW_JOINED(a, b) a##b

#define ROCEGW_STUB(index, versioned)                                      \
  .globl ROCEGW_JOINED(rocegw_stub_, index);                               \
  .type ROCEGW_JOINED(rocegw_stub_, index), @function;                     \
  .symver ROCEGW_JOINED(rocegw_stub_, index), versioned;                   \
  .p2align 4;                                                              \
  ROCEGW_JOINED(rocegw_stub_, index) : .cfi_startproc;                     \
  endbr64;                                                                 \
  movq rocegw_slots + 8 * (index)(%rip), %r11;                             \
  testq %r11, %r11;                                                        \
  jz 1f;                                                                   \
  jmp *%r11;                                                               \
  1 : movl $(index), %r11d;                                                \
  jmp rocegw_fill_slot;                                                    \
  .cfi_endproc;                                                            \
  .size ROCEGW_JOINED(rocegw_stub_, index), . - ROCEGW_JOINED(rocegw_stub_, index);

// A variable that the library defines. It starts as zeros there, and the library itself uses this
// one, which comes first in the search order.
#define ROCEGW_ZEROS(name, versioned, length)            \
  .bss;                                                  \
  .globl ROCEGW_JOINED(rocegw_zeros_, name);             \
  .type ROCEGW_JOINED(rocegw_zeros_, name), @object;     \
  .size ROCEGW_JOINED(rocegw_zeros_, name), length;      \
  .symver ROCEGW_JOINED(rocegw_zeros_, name), versioned; \
  .p2align 4;                                            \
  ROCEGW_JOINED(rocegw_zeros_, name) : .skip length;     \
  .text;

  .text
#include ROCEGW_STUBS

// %r11d: index of a stub. Everything that may carry an argument survives.
  .type rocegw_fill_slot, @function
rocegw_fill_slot:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $192, %rsp
  movq %rax, 0(%rsp)
  movq %rdi, 8(%rsp)
  movq %rsi, 16(%rsp)
  movq %rdx, 24(%rsp)
  movq %rcx, 32(%rsp)
  movq %r8, 40(%rsp)
  movq %r9, 48(%rsp)
  movq %r10, 56(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  movl %r11d, %edi
  call rocegw_find_target
  movq %rax, %r11
  movq 0(%rsp), %rax
  movq 8(%rsp), %rdi
  movq 16(%rsp), %rsi
  movq 24(%rsp), %rdx
  movq 32(%rsp), %rcx
  movq 40(%rsp), %r8
  movq 48(%rsp), %r9
  movq 56(%rsp), %r10
  movaps 64(%rsp), %xmm0
  movaps 80(%rsp), %xmm1
  movaps 96(%rsp), %xmm2
  movaps 112(%rsp), %xmm3
  movaps 128(%rsp), %xmm4
  movaps 144(%rsp), %xmm5
  movaps 160(%rsp), %xmm6
  movaps 176(%rsp), %xmm7
  leave
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
  .size rocegw_fill_slot, . - rocegw_fill_slot

  .section .note.GNU-stack, "", @progbits
