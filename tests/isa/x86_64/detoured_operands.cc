// Functions in assembly for their instructions' operands, prefixes and flags.
#if defined(__x86_64__)

#include "tests/isa/x86_64/detoured_assembly.h"

asm(R"(
    .pushsection detoured, "ax", @progbits

# C libraries jump over the prefix where there is one thread.
function detoured_lock
    mov %rdi, %rax
    test $1, %sil
    je 1f
    lock
1:  cmpxchg %rsi, (%rdx)
    mov %rax, %r8
    test $2, %sil
    jne 2f
    lock
2:  incl 8(%rdx)
    test $4, %sil
    jne 3f
    .byte 0x2e
    lock
3:  xadd %r8, 16(%rdx)
    lea (%r8, %rax), %rax
    ret
end

function detoured_prefixes, 0xcc
    push %rdi
    mov %rdx, %rdi
    lea 64(%rdx), %rsi
    mov $13, %ecx
    rep movsb
    mov %rdx, %rdi
    mov $0x5a, %eax
    mov $40, %ecx
    repne scasb
    mov %rdx, %rdi
    mov $3, %ecx
    rep stosw
    mov %ecx, %ecx
    rep stosb
    data16 nop
    .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    lea 5(%edi), %rax
    mov %fs:0, %r9
    sub %fs:(0), %r9
    add %r9, %rax
    .byte 0x48, 0x48, 0x01, 0xc8
    sub %edx, %eax
    pop %rcx
    .byte 0xf2
    jmp 1f
    nop
1:  add %rcx, %rax
    rep ret
end

function detoured_backwards
    lea 32(%rdx), %rdi
    lea 96(%rdx), %rsi
    mov $4, %ecx
    std
    lodsq
    stosq
    rep movsq
    cld
    sub %rdx, %rsi
    add %rsi, %rax
    ret
end

function detoured_near_data, 0xcc
    mov detoured_number(%rip), %rax
    cmpb $17, detoured_number(%rip)
    je 1f
    add $3, %rax
1:  addl $0x1234567, detoured_number + 8(%rip)
    push detoured_number + 8(%rip)
    pop %rcx
    add %rcx, %rax
    movq $0, detoured_number + 8(%rip)
    lea detoured_number(%rip), %r8
    lea detoured_number + 8(%rip), %r9
    sub %r8, %r9
    add %r9, %rax
    movsd detoured_number + 16(%rip), %xmm0
    mulsd detoured_number + 16(%rip), %xmm0
    cvttsd2si %xmm0, %rcx
    add %rcx, %rax
    jmp *detoured_pointer(%rip)
end
function detoured_behind_pointer
    xor %rdi, %rax
    ret
end
    .pushsection .data.rel.local, "aw"
    .p2align 3
detoured_number:
    .quad 0x111, 0
    .double 7.25
detoured_pointer:
    .quad detoured_behind_pointer
    .popsection

function detoured_flags
    xor %eax, %eax
    add %rsi, %rdi
    adc $0, %eax
    sbb %rdi, %rsi
    adc %eax, %eax
    cmc
    adc %eax, %eax
    stc
    rcl %eax
    clc
    rcr %eax
    cmp %rdi, %rsi
    setb %cl
    seto %ch
    setle %r8b
    cmovg %esi, %eax
    lahf
    movzbl %ah, %edx
    mov %edx, %r9d
    add %edi, %esi
    sahf
    jp 1f
    inc %eax
1:  js 2f
    dec %r9d
2:  pushf
    pop %r10
    and $0xcd5, %r10d
    movzbl %cl, %ecx
    add %ecx, %eax
    add %r9d, %eax
    add %r10d, %eax
    ret
end

function detoured_loaded_flags, 0xcc
    cmp %rsi, %rdi
    pushf
    add $1, %rdi
    popf
    ja 1f
    lea 5(%rdi), %rax
    ret
1:  lea 6(%rsi), %rax
    ret
end

# Below the stack pointer, where no signal's frame goes.
function detoured_red_zone
    mov %rdi, -8(%rsp)
    mov %rsi, -128(%rsp)
    cmp %rsi, %rdi
    movq $5, -16(%rsp)
    mov -8(%rsp), %rax
    adc -128(%rsp), %rax
    sub -16(%rsp), %rax
    ret
end

function detoured_numbers
    mov %rdx, %r8
    mov %rdi, %rax
    mul %rsi
    add %rdx, %rax
    xor %edx, %edx
    mov $7, %ecx
    div %rcx
    imul $1000, %rdx, %rcx
    add %rcx, %rax
    cqto
    cwtl
    bswap %rax
    bsr %rax, %rcx
    bts %rdi, %rax
    shld $5, %rdi, %rax
    shrd %cl, %rsi, %rax
    xchg %rax, (%r8)
    xchg %eax, %ecx
    push %rbx
    lea 64(%r8), %rbx
    and $63, %eax
    xlat
    movzbl %al, %eax
    mov $5, %ebx
    lea 16(%r8), %r9
    and $-16, %r9
    mov (%r9), %rax
    mov 8(%r9), %rdx
    lock cmpxchg16b (%r9)
    sete %al
    pop %rbx
    ret
end

function detoured_vectors, 0xcc
    movq %rdi, %xmm0
    movq %rsi, %xmm1
    punpcklqdq %xmm1, %xmm0
    pshufd $0x1b, %xmm0, %xmm2
    paddd %xmm0, %xmm2
    movdqu (%rdx), %xmm3
    pxor %xmm3, %xmm2
    movups %xmm2, 32(%rdx)
    cvtsi2sd %rdi, %xmm4
    sqrtsd %xmm4, %xmm5
    ucomisd %xmm4, %xmm5
    jp 1f
    ja 2f
1:  addsd %xmm4, %xmm5
2:  cvttsd2si %xmm5, %rax
    pmovmskb %xmm2, %ecx
    add %rcx, %rax
    fldl 32(%rdx)
    fld1
    faddp
    fstpl 40(%rdx)
    ldmxcsr detoured_control(%rip)
    ret
end
    .pushsection .rodata
    .p2align 2
detoured_control:
    .long 0x1f80
    .popsection
    .p2align 4, 0xcc
    .popsection
)");

#endif
