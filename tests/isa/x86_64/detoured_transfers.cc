// Functions in assembly for their transfers: calls, returns, jumps, branches, and where they lead.
#if defined(__x86_64__)

#include "tests/isa/x86_64/detoured_assembly.h"

asm(R"(
    .pushsection detoured, "ax", @progbits

# A table leads to each of these short instructions.
function detoured_switch
    mov %edi, %ecx
    and $7, %ecx
    lea detoured_cases(%rip), %r8
    movslq (%r8, %rcx, 4), %rcx
    add %r8, %rcx
    xor %eax, %eax
    notrack jmp *%rcx
1:  inc %eax
2:  add %esi, %eax
3:  lea 1(%rax, %rax), %eax
4:  not %eax
5:  xor %edi, %eax
6:  push %rax
    pop %rcx
    add $7, %al
7:  sub %ecx, %eax
8:  ret
end
    .pushsection .rodata
    .p2align 2
detoured_cases:
    .long 1b - detoured_cases, 2b - detoured_cases, 3b - detoured_cases, 4b - detoured_cases
    .long 5b - detoured_cases, 6b - detoured_cases, 7b - detoured_cases, 8b - detoured_cases
    .popsection

# The table lies among the code.
function detoured_table_in_code
    mov %edi, %ecx
    and $3, %ecx
    lea detoured_table(%rip), %r8
    add (%r8, %rcx, 8), %r8
    mov %esi, %eax
    jmp *%r8
1:  inc %eax
    ret
2:  dec %eax
    ret
    .type detoured_table, @object
detoured_table:
    .quad 1b - detoured_table, 2b - detoured_table, 3f - detoured_table, 4f - detoured_table
    .size detoured_table, . - detoured_table
3:  shl %eax
4:  neg %eax
    ret
end

# Some have no room of their own, some have padding behind them.
function detoured_nothing
    ret
end
function detoured_one, 0xcc
    lea 1(%rdi), %eax
    ret
end
function detoured_same, 0xcc
    mov %edi, %eax
    ret
end
function detoured_same_again, 0xcc, 0
    mov %edi, %eax
    ret
end
function detoured_zero
    xor %eax, %eax
    ret
end

function detoured_calls
    push %rbx
    push %rbp
    push %r12
    mov %rdi, %rbx
    mov %rdx, %rbp
    call detoured_one
    mov %eax, %r12d
    call *detoured_pointers + 8(%rip)
    add %eax, %r12d
    lea detoured_same(%rip), %rax
    mov %ebx, %edi
    call *%rax
    add %eax, %r12d
    lea detoured_pointers(%rip), %rcx
    mov $2, %eax
    call *(%rcx, %rax, 8)
    add %eax, %r12d
    lea detoured_same(%rip), %r8
    push %r8
    push %r8
    call *(%rsp)
    call *8(%rsp)
    pop %r9
    call *-8(%rsp)
    pop %r9
    add %eax, %r12d
    lea detoured_one(%rip), %r11
    mov %rbx, %rdi
    call *%r11
    call detoured_same_again
    call detoured_nothing
    add %r12d, %eax
    pop %r12
    pop %rbp
    pop %rbx
    ret
end
    .pushsection .data.rel.local, "aw"
    .p2align 3
detoured_pointers:
    .quad detoured_zero, detoured_one, detoured_same
    .popsection

function detoured_own_address
    call 1f
1:  pop %rax
    lea 1b(%rip), %rcx
    sub %rcx, %rax
    push %rax
    push $0x1234567
    push $-5
    pop %rcx
    pop %r8
    add %r8, %rcx
    pop %rax
    lea (%rax, %rcx), %rax
    push %rsp
    pop %rcx
    sub %rsp, %rcx
    add %rcx, %rax
    ret
end

# Loops that lead back to short instructions.
function detoured_loops, 0xcc
    movzbl %dil, %ecx
    and $31, %ecx
    inc %ecx
    xor %eax, %eax
1:  add %ecx, %eax
    rol %eax
    dec %ecx
    jnz 1b
    mov $5, %ecx
2:  inc %eax
    loop 2b
    mov $9, %ecx
3:  loop 3b
    mov $6, %ecx
4:  add $3, %eax
    cmp $40, %eax
    loopne 4b
    mov $6, %ecx
5:  xor %r8d, %r8d
    loope 5b
    and $3, %edi
    mov %edi, %ecx
    jrcxz 6f
    inc %eax
6:  nop
    jecxz 7f
    inc %eax
7:  inc %eax
    ret
end

function detoured_frame
    enter $32, $0
    mov %rdi, -8(%rbp)
    mov %rsi, -16(%rbp)
    push -8(%rbp)
    pop (%rdx)
    mov -16(%rbp), %rax
    leave
    push %rax
    push %rax
    push %rdi
    call detoured_takes_away
    ret
end
function detoured_takes_away
    mov 8(%rsp), %rax
    add 16(%rsp), %rax
    sub 24(%rsp), %rax
    ret $24
end

# A part that lies elsewhere leads back between two short instructions.
function detoured_parted
    test %edi, %edi
    js detoured_part
    inc %eax
    xor %eax, %eax
    inc %eax
1:  add %esi, %eax
    dec %eax
    ret
end
function detoured_part
    mov %edi, %eax
    jmp 1b
end

# What one reads as the end of a jump is an instruction, too.
function detoured_overlapping
    mov %edi, %eax
    .byte 0xeb, 0xff, 0xc0
    nop
    add %esi, %eax
    test $1, %al
    jne 1f + 1
1:  .byte 0xa9, 0x83, 0xc0, 0x11, 0x90
    ret
end

# The branch is never taken.
function detoured_never
    mov %rdi, %rax
    or $1, %edi
    jz 1f
    ret
1:  ud2
    nop
    int3
    nop
    syscall
    nop
    int $0x80
    hlt
    xbegin 2f
2:  jmp *%rsp
    call *%rsp
    iretq
    int $3
    jmp 2b
end

function detoured_no_memory, 0xcc
    xor %eax, %eax
    jmp 1f
    .p2align 4
1:  inc %eax
    cmp $3, %eax
    jl 1b
    test %rdi, %rdi
    jns 2f
    jmp detoured_one
2:  jmp detoured_same
end
    .p2align 4, 0xcc
    .popsection
)");

#endif
