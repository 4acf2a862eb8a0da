// asm_work(a, b): their sum. What the assembler tells of it is its name and its lines.
	.text
	.globl asm_work
	.type asm_work, %function
asm_work:
	add x0, x0, x1
	ret
	.size asm_work, .-asm_work
	.section .note.GNU-stack, "", %progbits
