// NVRTC's output for strided_copy.cu and compute_75, with the oldest PTX version that supports it;
// a test compares them.

namespace hone::cuda {

extern const char strided_copy_ptx[];
const char strided_copy_ptx[] = R"ptx(
.version 6.3
.target sm_75
.address_size 64
	// .globl	strided_copy
.visible .entry strided_copy(
	.param .u64 strided_copy_param_0,
	.param .u64 strided_copy_param_1,
	.param .align 8 .b8 strided_copy_param_2[208]
)
{
	.reg .pred 	%p<17>;
	.reg .b16 	%rs<5>;
	.reg .b32 	%r<33>;
	.reg .b64 	%rd<94>;
	ld.param.u64 	%rd48, [strided_copy_param_0];
	ld.param.u64 	%rd49, [strided_copy_param_1];
	mov.b64 	%rd50, strided_copy_param_2;
	cvta.to.global.u64 	%rd2, %rd48;
	cvta.to.global.u64 	%rd3, %rd49;
	mov.u32 	%r11, %nctaid.x;
	mov.u32 	%r12, %ntid.x;
	mul.wide.u32 	%rd4, %r11, %r12;
	mov.u32 	%r13, %ctaid.x;
	mul.wide.u32 	%rd51, %r13, %r12;
	mov.u32 	%r14, %tid.x;
	cvt.u64.u32 	%rd52, %r14;
	add.s64 	%rd5, %rd51, %rd52;
	add.s64 	%rd6, %rd50, 192;
	ld.param.u64 	%rd7, [strided_copy_param_2+192];
	setp.ge.s64 	%p1, %rd5, %rd7;
	@%p1 bra 	$L__BB0_29;
	ld.param.v2.u32 	{%r15, %r16}, [%rd6+8];
	setp.gt.s32 	%p2, %r15, 0;
	@%p2 bra 	$L__BB0_10;
	bra.uni 	$L__BB0_2;
$L__BB0_10:
	setp.eq.s32 	%p8, %r16, 1;
	@%p8 bra 	$L__BB0_22;
	bra.uni 	$L__BB0_11;
$L__BB0_22:
	add.s32 	%r8, %r15, 1;
	add.s32 	%r25, %r15, -1;
	mul.wide.s32 	%rd65, %r25, 8;
	add.s64 	%rd66, %rd50, %rd65;
	add.s64 	%rd29, %rd66, 128;
$L__BB0_23:
	.pragma "nounroll";
	mov.u64 	%rd89, 0;
	mov.u64 	%rd88, %rd29;
	mov.u32 	%r32, %r8;
	mov.u64 	%rd90, %rd89;
	mov.u64 	%rd91, %rd5;
$L__BB0_24:
	.pragma "nounroll";
	add.s64 	%rd36, %rd88, -128;
	ld.param.u64 	%rd37, [%rd88+-128];
	or.b64  	%rd69, %rd91, %rd37;
	and.b64  	%rd70, %rd69, -4294967296;
	setp.eq.s64 	%p14, %rd70, 0;
	@%p14 bra 	$L__BB0_26;
	div.s64 	%rd38, %rd91, %rd37;
	mul.lo.s64 	%rd71, %rd38, %rd37;
	sub.s64 	%rd93, %rd91, %rd71;
	mov.u64 	%rd91, %rd38;
	bra.uni 	$L__BB0_27;
$L__BB0_26:
	cvt.u32.u64 	%r26, %rd37;
	cvt.u32.u64 	%r27, %rd91;
	div.u32 	%r28, %r27, %r26;
	mul.lo.s32 	%r29, %r28, %r26;
	sub.s32 	%r30, %r27, %r29;
	cvt.u64.u32 	%rd91, %r28;
	cvt.u64.u32 	%rd93, %r30;
$L__BB0_27:
	ld.param.u64 	%rd72, [%rd36+64];
	mul.lo.s64 	%rd73, %rd72, %rd93;
	add.s64 	%rd90, %rd73, %rd90;
	ld.param.u64 	%rd74, [%rd36+128];
	mul.lo.s64 	%rd75, %rd74, %rd93;
	add.s64 	%rd89, %rd75, %rd89;
	add.s64 	%rd88, %rd88, -8;
	add.s32 	%r32, %r32, -1;
	setp.gt.s32 	%p15, %r32, 1;
	@%p15 bra 	$L__BB0_24;
	add.s64 	%rd76, %rd3, %rd89;
	ld.global.u8 	%rs4, [%rd76];
	add.s64 	%rd78, %rd2, %rd90;
	st.global.u8 	[%rd78], %rs4;
	add.s64 	%rd5, %rd5, %rd4;
	setp.lt.s64 	%p16, %rd5, %rd7;
	@%p16 bra 	$L__BB0_23;
	bra.uni 	$L__BB0_29;
$L__BB0_11:
	.pragma "nounroll";
	mov.u64 	%rd82, 0;
	mov.u32 	%r31, %r15;
	mov.u64 	%rd83, %rd82;
	mov.u64 	%rd84, %rd5;
$L__BB0_12:
	.pragma "nounroll";
	add.s32 	%r7, %r31, -1;
	mul.wide.s32 	%rd56, %r7, 8;
	add.s64 	%rd16, %rd50, %rd56;
	ld.param.u64 	%rd17, [%rd16];
	or.b64  	%rd57, %rd84, %rd17;
	and.b64  	%rd58, %rd57, -4294967296;
	setp.eq.s64 	%p9, %rd58, 0;
	@%p9 bra 	$L__BB0_14;
	div.s64 	%rd18, %rd84, %rd17;
	mul.lo.s64 	%rd59, %rd18, %rd17;
	sub.s64 	%rd86, %rd84, %rd59;
	mov.u64 	%rd84, %rd18;
	bra.uni 	$L__BB0_15;
$L__BB0_14:
	cvt.u32.u64 	%r18, %rd17;
	cvt.u32.u64 	%r19, %rd84;
	div.u32 	%r20, %r19, %r18;
	mul.lo.s32 	%r21, %r20, %r18;
	sub.s32 	%r22, %r19, %r21;
	cvt.u64.u32 	%rd84, %r20;
	cvt.u64.u32 	%rd86, %r22;
$L__BB0_15:
	ld.param.u64 	%rd60, [%rd16+64];
	mul.lo.s64 	%rd61, %rd60, %rd86;
	add.s64 	%rd83, %rd61, %rd83;
	ld.param.u64 	%rd62, [%rd16+128];
	mul.lo.s64 	%rd63, %rd62, %rd86;
	add.s64 	%rd82, %rd63, %rd82;
	setp.gt.s32 	%p10, %r31, 1;
	mov.u32 	%r31, %r7;
	@%p10 bra 	$L__BB0_12;
	add.s64 	%rd26, %rd3, %rd82;
	add.s64 	%rd27, %rd2, %rd83;
	setp.eq.s32 	%p11, %r16, 4;
	@%p11 bra 	$L__BB0_19;
	setp.ne.s32 	%p12, %r16, 2;
	@%p12 bra 	$L__BB0_20;
	ld.global.u16 	%rs3, [%rd26];
	st.global.u16 	[%rd27], %rs3;
	bra.uni 	$L__BB0_21;
$L__BB0_19:
	ld.global.u32 	%r24, [%rd26];
	st.global.u32 	[%rd27], %r24;
	bra.uni 	$L__BB0_21;
$L__BB0_20:
	ld.global.u64 	%rd64, [%rd26];
	st.global.u64 	[%rd27], %rd64;
$L__BB0_21:
	add.s64 	%rd5, %rd5, %rd4;
	setp.lt.s64 	%p13, %rd5, %rd7;
	@%p13 bra 	$L__BB0_11;
	bra.uni 	$L__BB0_29;
$L__BB0_2:
	setp.eq.s32 	%p3, %r16, 1;
	@%p3 bra 	$L__BB0_9;
	bra.uni 	$L__BB0_3;
$L__BB0_9:
	.pragma "nounroll";
	ld.global.u8 	%rs2, [%rd3];
	st.global.u8 	[%rd2], %rs2;
	add.s64 	%rd5, %rd5, %rd4;
	setp.lt.s64 	%p7, %rd5, %rd7;
	@%p7 bra 	$L__BB0_9;
	bra.uni 	$L__BB0_29;
$L__BB0_3:
	.pragma "nounroll";
	setp.eq.s32 	%p4, %r16, 4;
	@%p4 bra 	$L__BB0_6;
	setp.ne.s32 	%p5, %r16, 2;
	@%p5 bra 	$L__BB0_7;
	ld.global.u16 	%rs1, [%rd3];
	st.global.u16 	[%rd2], %rs1;
	bra.uni 	$L__BB0_8;
$L__BB0_6:
	ld.global.u32 	%r17, [%rd3];
	st.global.u32 	[%rd2], %r17;
	bra.uni 	$L__BB0_8;
$L__BB0_7:
	ld.global.u64 	%rd53, [%rd3];
	st.global.u64 	[%rd2], %rd53;
$L__BB0_8:
	add.s64 	%rd5, %rd5, %rd4;
	setp.lt.s64 	%p6, %rd5, %rd7;
	@%p6 bra 	$L__BB0_3;
$L__BB0_29:
	ret;
}
)ptx";

}  // namespace hone::cuda
