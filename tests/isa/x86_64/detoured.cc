// Some are written in assembly, for what compilers seldom make; the others are a compiler's, optimized. Each gives the
// same answer whenever it is called with the same arguments and memory.
#if defined(__x86_64__)

#include "tests/isa/x86_64/detoured.h"

#include <csetjmp>
#include <cstring>
#include <utility>

// rdi and rsi are the numbers, rdx the memory.
asm(R"(
    .pushsection detoured, "ax", @progbits

    .macro function name:req, filler=0x90
    .p2align 4, \filler
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .endm
    .macro end name:req
    .size \name, . - \name
    .endm

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
end detoured_switch
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
end detoured_table_in_code

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
end detoured_lock

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
end detoured_prefixes

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
end detoured_backwards

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
    jmp *detoured_pointers(%rip)
end detoured_near_data
function detoured_behind_pointer
    xor %rdi, %rax
    ret
end detoured_behind_pointer
    .pushsection .data.rel.local, "aw"
    .p2align 3
detoured_number:
    .quad 0x111, 0
    .double 7.25
detoured_pointers:
    .quad detoured_behind_pointer, detoured_one, detoured_same
    .popsection

# Some have no room of their own, some have padding behind them.
function detoured_nothing
    ret
end detoured_nothing
function detoured_one, 0xcc
    lea 1(%rdi), %eax
    ret
end detoured_one
function detoured_same, 0xcc
    mov %edi, %eax
    ret
end detoured_same
    .globl detoured_same_again
    .type detoured_same_again, @function
detoured_same_again:
    mov %edi, %eax
    ret
end detoured_same_again
function detoured_zero
    xor %eax, %eax
    ret
end detoured_zero

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
end detoured_calls

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
end detoured_own_address

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
end detoured_loops

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
end detoured_flags

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
end detoured_loaded_flags

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
end detoured_red_zone

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
end detoured_frame
function detoured_takes_away
    mov 8(%rsp), %rax
    add 16(%rsp), %rax
    sub 24(%rsp), %rax
    ret $24
end detoured_takes_away

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
end detoured_parted
function detoured_part
    mov %edi, %eax
    jmp 1b
end detoured_part

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
end detoured_overlapping

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
end detoured_never

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
end detoured_numbers

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
end detoured_vectors
    .pushsection .rodata
    .p2align 2
detoured_control:
    .long 0x1f80
    .popsection

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
end detoured_no_memory
    .p2align 4, 0xcc
    .popsection
)");

#define KT_DETOURED [[gnu::section("detoured"), gnu::noinline]]

extern "C" {
#define KT_ASSEMBLY(name) std::uint64_t name(std::uint64_t, std::uint64_t, std::uint64_t *)
KT_ASSEMBLY(detoured_switch);
KT_ASSEMBLY(detoured_table_in_code);
KT_ASSEMBLY(detoured_lock);
KT_ASSEMBLY(detoured_prefixes);
KT_ASSEMBLY(detoured_backwards);
KT_ASSEMBLY(detoured_near_data);
KT_ASSEMBLY(detoured_one);
KT_ASSEMBLY(detoured_zero);
KT_ASSEMBLY(detoured_calls);
KT_ASSEMBLY(detoured_own_address);
KT_ASSEMBLY(detoured_loops);
KT_ASSEMBLY(detoured_flags);
KT_ASSEMBLY(detoured_loaded_flags);
KT_ASSEMBLY(detoured_red_zone);
KT_ASSEMBLY(detoured_frame);
KT_ASSEMBLY(detoured_parted);
KT_ASSEMBLY(detoured_overlapping);
KT_ASSEMBLY(detoured_never);
KT_ASSEMBLY(detoured_numbers);
KT_ASSEMBLY(detoured_vectors);
KT_ASSEMBLY(detoured_no_memory);
}

namespace ktrace::test {

namespace {

using Word = std::uint64_t;

KT_DETOURED Word fibonacci(Word n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KT_DETOURED Word recursion(Word a, Word, Word *) { return fibonacci(a % 10); }

KT_DETOURED Word cases(Word a, Word b, Word *memory) {
    Word sum = 0;
    for (Word i = 0; i < 12; ++i) {
        switch ((a + i) % 11) {
        case 0: sum += b; break;
        case 1: sum ^= memory[i]; break;
        case 2: memory[i] += sum; [[fallthrough]];
        case 3: sum <<= 1; break;
        case 4: sum -= a * b; break;
        case 5: std::swap(memory[1], memory[i]); break;
        case 6: sum = sum % 1000 + 3; break;
        case 7: sum |= 1; break;
        case 8: memory[0] = sum; break;
        default: sum = ~sum;
        }
    }
    return sum;
}

KT_DETOURED Word tail(Word a, Word b, Word *memory) {
    if (a == 0) return b;
    memory[a % detoured_words] += b;
    return (a & 1) != 0 ? cases(a, b, memory) : recursion(a, b, memory);
}

KT_DETOURED Word library(Word a, Word b, Word *memory) {
    char text[64] = {};
    std::memcpy(text, memory, a % 50 + 1);
    text[63] = 0;
    std::memset(memory + 2, static_cast<int>(b), a % 33);
    return std::strlen(text) + static_cast<Word>(std::memcmp(text, memory, 8) != 0);
}

KT_DETOURED double area(double x, double y) {
    double sum = 0;
    for (int i = 1; i < 9; ++i) sum += x / i - y * (x > y ? 0.5 : -0.25);
    return sum;
}
KT_DETOURED Word floats(Word a, Word b, Word *memory) {
    float small[8];
    for (int i = 0; i < 8; ++i) small[i] = static_cast<float>(memory[i] % 100) * 0.5f;
    float total = 0;
    for (float each : small) total += each * each;
    const double x = area(static_cast<double>(a % 1000), static_cast<double>(b % 1000));
    return static_cast<Word>(static_cast<std::int64_t>(x * 16)) + static_cast<Word>(total);
}

struct Failure {
    Word value;
};
KT_DETOURED Word fails(Word a) {
    if (a % 3 == 1) throw Failure{a};
    if (a % 3 == 2) throw static_cast<int>(a);
    return a;
}
struct Undo {
    Word *memory;
    Word by;
    ~Undo() { memory[3] -= by; }
};
KT_DETOURED Word between(Word a, Word *memory) {
    const Undo undo{memory, a};
    memory[3] += 2 * a;
    return fails(a) + 1;
}
KT_DETOURED Word exceptions(Word a, Word b, Word *memory) {
    Word sum = 0;
    for (Word each : {a, b, a + b}) {
        try {
            sum += between(each, memory);
        } catch (const Failure &failure) {
            sum ^= failure.value;
        } catch (int number) {
            sum += static_cast<Word>(number) * 3;
        }
    }
    return sum;
}

jmp_buf way_out;
KT_DETOURED void leaves(Word a) {
    if (a != 0) std::longjmp(way_out, static_cast<int>(a));
}
KT_DETOURED Word jumps_out(Word a, Word b, Word *memory) {
    const int come_back = setjmp(way_out);
    if (come_back != 0) return static_cast<Word>(come_back) + memory[4];
    leaves(a % 4);
    return b;
}

thread_local Word own = 1;
KT_DETOURED Word variables(Word a, Word b, Word *) {
    static Word all[4];
    own = a;
    for (Word i = 0; i < 4; ++i) all[i] = own * i + b;
    own += all[(a + b) % 4];
    return own + all[2];
}

KT_DETOURED Word wide(Word a, Word b, Word *memory) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + memory[2];
    memory[5] = static_cast<Word>(product >> 64);
    return static_cast<Word>(product / (b | 1));
}

KT_DETOURED Word by_pointer(Word a, Word b, Word *memory) {
    static constexpr Detoured::Call calls[] = {tail, wide, detoured_one, floats, detoured_flags};
    Word sum = 0;
    for (Word i = 0; i < 5; ++i) sum = sum * 31 + calls[(a + i) % 5](a, b + i, memory);
    return sum;
}

KT_DETOURED Word on_stack(Word a, Word b, Word *memory) {
    auto *many = static_cast<Word *>(__builtin_alloca((a % 20 + 1) * sizeof(Word)));
    for (Word i = 0; i <= a % 20; ++i) many[i] = b ^ i;
    memory[6] = many[a % 20];
    return many[0] + many[a % 20];
}

constexpr Detoured all[] = {
    {"switch", detoured_switch},
    {"table_in_code", detoured_table_in_code},
    {"lock", detoured_lock},
    {"prefixes", detoured_prefixes},
    {"backwards", detoured_backwards},
    {"near_data", detoured_near_data},
    {"one", detoured_one},
    {"zero", detoured_zero},
    {"calls", detoured_calls},
    {"own_address", detoured_own_address},
    {"loops", detoured_loops},
    {"flags", detoured_flags},
    {"loaded_flags", detoured_loaded_flags},
    {"red_zone", detoured_red_zone},
    {"frame", detoured_frame},
    {"parted", detoured_parted},
    {"overlapping", detoured_overlapping},
    {"never", detoured_never},
    {"numbers", detoured_numbers},
    {"vectors", detoured_vectors},
    {"no_memory", detoured_no_memory},
    {"recursion", recursion},
    {"cases", cases},
    {"tail", tail},
    {"library", library},
    {"floats", floats},
    {"exceptions", exceptions, 2},
    {"jumps_out", jumps_out},
    {"variables", variables},
    {"wide", wide},
    {"by_pointer", by_pointer},
    {"on_stack", on_stack},
};

} // namespace

std::span<const Detoured> detoured() { return all; }

} // namespace ktrace::test

#endif
