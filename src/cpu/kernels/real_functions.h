#pragma once

#include "cpu/kernels/sixteen.h"

// The functions of reals, as polynomials: one source, so that all sets that have a fused
// multiply-add give the same bits. kernels.h says how far they err. The coefficients, highest power
// first, minimise the largest error relative to the function.
namespace tilewright::cpu::TW_LEVEL {
namespace {

template <int count>
TW_INLINE Floats polynomial(const float (&coefficients)[count], Floats x) {
  Floats sum = splat(coefficients[0]);
  for (int i = 1; i < count; ++i) sum = fused(sum, x, coefficients[i]);
  return sum;
}

// 2^x is 2^n times a polynomial of the rest, which is at most 1/2.
TW_INLINE Floats exp2_of(Floats x) {
  constexpr float kPolynomial[] = {
      1.5353362e-4f, 1.33988739e-3f, 9.61843692e-3f, 5.55033237e-2f, 0.240226477f, 0.693147182f,
      1.0f};
  const Floats limited = at_most(at_least(x, -160), 130);
  const Floats n = whole<Whole::nearest>(limited);
  return scaled(polynomial(kPolynomial, limited - n), n);
}

constexpr float kLog2E = 1.44269504f;
// ln 2 in two parts, the first of few bits: n times it is exact.
constexpr float kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f;

// x = n ln 2 + rest. e^rest - 1 = rest + rest^2 * polynomial.
struct Exponent {
  Floats n, rest, minus_one;
};
TW_INLINE Exponent split_exponent(Floats x) {
  constexpr float kPolynomial[] = {1.39464508e-3f, 8.36658385e-3f, 4.16662805e-2f, 0.166665435f,
                                   0.5f};
  const Floats n = whole<Whole::nearest>(x * kLog2E);
  const Floats rest = fused(n, -kLn2Low, fused(n, -kLn2High, x));
  return {n, rest, fused(rest * rest, polynomial(kPolynomial, rest), rest)};
}

TW_INLINE Floats exp_of(Floats x) {
  const Exponent e = split_exponent(at_most(at_least(x, -110), 90));
  return scaled(e.minus_one + 1, e.n);
}

// e^x - 1 = 2^n (e^rest - 1) + (2^n - 1).
TW_INLINE Floats expm1_of(Floats x) {
  const Exponent e = split_exponent(at_most(at_least(x, -20), 88.8f));
  // 2^128 is no float, half of it is.
  const Floats half = scaled(splat(1), e.n - 1);
  const Floats result = fused(half, e.minus_one, half - 0.5f) * 2;
  return choose(x == 0, x, choose(x > 88.8f, splat(__builtin_inff()), result));
}

// x = m 2^n with m between sqrt(1/2) and sqrt(2), of a normal x. ln m = rest - rest^2/2 + ...
struct Logarithm {
  Floats n, of_rest;
};
TW_INLINE Floats log_near_one(Floats rest) {
  constexpr float kPolynomial[] = {6.74663633e-2f, -0.116760515f, 0.118883781f,
                                   -0.124055438f,  0.142195195f,  -0.166679963f,
                                   0.200021207f,   -0.250000089f, 0.333333135f};
  const Floats square = rest * rest;
  return fused(square * rest, polynomial(kPolynomial, rest), fused(square, -0.5f, rest));
}
TW_INLINE Logarithm split_logarithm(Floats x) {
  const Ints subnormal = x < 0x1p-126f;
  const Ints bits = bits_of(choose(subnormal, x * 0x1p24f, x));
  constexpr std::int32_t kRootHalf = 0x3f3504f3, kFraction = 0x7fffff;
  // Of a negative x, whose logarithm is no number, it wraps.
  const Ints above = (Ints)((Words)bits - std::uint32_t{kRootHalf});
  const Floats rest = floats_of((above & kFraction) + kRootHalf) - 1;
  return {to_floats((above >> 23) - (subnormal & 24)), log_near_one(rest)};
}
// What a logarithm is of 0, of less, of infinity and of NaN.
TW_INLINE Floats with_special_logarithms(Floats x, Floats result) {
  const Floats infinity = splat(__builtin_inff());
  result = choose(x < infinity, result, x);
  result = choose(x == 0, -infinity, result);
  return choose(x < 0, splat(__builtin_nanf("")), result);
}

TW_INLINE Floats log_of(Floats x) {
  const Logarithm l = split_logarithm(x);
  const Floats result = fused(l.n, kLn2High, fused(l.n, kLn2Low, l.of_rest));
  return with_special_logarithms(x, result);
}

TW_INLINE Floats log2_of(Floats x) {
  const Logarithm l = split_logarithm(x);
  return with_special_logarithms(x, fused(l.of_rest, splat(kLog2E), l.n));
}

// 1 + x is rounded; what that loses is added behind.
TW_INLINE Floats log1p_of(Floats x) {
  const Floats sum = x + 1;
  const Floats lost = choose(magnitude(x) < 1, x - (sum - 1), 1 - (sum - x));
  const Logarithm l = split_logarithm(sum);
  const Floats low = fused(l.n, kLn2Low, lost / sum);
  const Floats result = fused(l.n, kLn2High, l.of_rest + low);
  return choose((x > -0x1p-25f) & (x < 0x1p-25f), x, with_special_logarithms(sum, result));
}

TW_INLINE Floats tanh_of(Floats x) {
  constexpr float kSmall[] = {2.14753998e-3f,  -8.18267744e-3f, 2.17029694e-2f,
                              -5.39472029e-2f, 0.133332103f,    -0.333333313f};
  const Floats a = magnitude(x), square = x * x;
  const Floats small = fused(square * polynomial(kSmall, square), a, a);
  const Floats large = 1 - 2 / (exp_of(a * 2) + 1);
  return with_sign(choose(a < 0.625f, small, large), x);
}

// A polynomial of degree 5 of what |x| lies beside the nearest multiple of 1/4. Of the coefficients
// of one power each lane takes that of its multiple. Several vectors take turns: one waits for its
// product while the others begin theirs.
template <int count>
TW_INLINE void erf_of(Floats (&x)[count]) {
  constexpr Sixteen kPolynomials[] = {
      {{0.111089036f, 0.080831781f, 0.00815974362f, -0.052477017f, -0.0687321573f, -0.0471098833f,
        -0.0150321443f, 0.00643181428f, 0.0129848523f, 0.010636651f, 0.00613417476f, 0.00277595548f,
        0.00102876336f, 0.000319127779f, 8.39456043e-05f, 1.88838894e-05f}},
      {{0.00025758511f, 0.126042277f, 0.181912526f, 0.150058642f, 0.0692901313f, -0.00566246593f,
        -0.0441468768f, -0.0478918664f, -0.0344337821f, -0.0191510115f, -0.00868784729f,
        -0.00329699251f, -0.00106175244f, -0.000292780256f, -6.95544513e-05f, -1.42976623e-05f}},
      {{-0.376139522f, -0.309191197f, -0.146478385f, 0.0267797261f, 0.138365179f, 0.167535573f,
        0.138753727f, 0.0901591107f, 0.0482239127f, 0.0217247475f, 0.00834993366f, 0.00276020193f,
        0.000788987265f, 0.000195760193f, 4.22785051e-05f, 7.96484437e-06f}},
      {{2.24626334e-07f, -0.264998108f, -0.43938446f, -0.482194632f, -0.415108114f, -0.295654297f,
        -0.178398088f, -0.092357479f, -0.0413340367f, -0.016069822f, -0.00544532714f,
        -0.00161203463f, -0.000417657371f, -9.48278757e-05f, -1.88872054e-05f, -3.30268745e-06f}},
      {{1.12837923f, 1.06001425f, 0.87878263f, 0.642931104f, 0.415107518f, 0.236521125f,
        0.118930288f, 0.0527749918f, 0.020666983f, 0.00714231841f, 0.00217828457f, 0.000586277689f,
        0.00013925333f, 2.91891483e-05f, 5.39946859e-06f, 1.08e-6f}},
      {{0.0f, 0.276326388f, 0.520499885f, 0.711155653f, 0.842700779f, 0.92290014f, 0.966105163f,
        0.986671686f, 0.995322287f, 0.998537302f, 0.999593019f, 0.999899387f, 0.999977887f,
        0.999995708f, 0.999999285f, 0.999999881f}},
  };
  constexpr float kLast = 0x1.effffep1f;  // where it is 1, and nearest to the last multiple
  constexpr float kRound = 0x1.8p21f;     // to quarters, which its last bits count
  Floats rest[count], sum[count];
  Ints counts[count];
  unrolled<count>([&](auto i) {
    const Floats size = at_most(magnitude(x[i.value]), kLast);
    const Floats counted = size + kRound;
    rest[i.value] = size - (counted - kRound);
    counts[i.value] = bits_of(counted);
  });
  const Places<count> places(counts);
  places.take(kPolynomials[0], sum);
  unrolled<5>([&](auto power) {
    Floats next[count];
    places.take(kPolynomials[power.value + 1], next);
    unrolled<count>(
        [&](auto i) { sum[i.value] = fused(sum[i.value], rest[i.value], next[i.value]); });
  });
  unrolled<count>([&](auto i) { x[i.value] = with_sign(sum[i.value], x[i.value]); });
}

TW_INLINE Floats rsqrt_of(Floats x) { return 1 / square_root(x); }

// An angle less the nearest multiple n of pi/2, in doubles: of two parts of pi/2 the first has so
// few bits that n times it is exact.
constexpr float kLargestAngle = 0x1p20f;
TW_INLINE double less_quarter_turns(double x, double& n) {
  constexpr double kRound = 0x1.8p52;
  n = (x * 0x1.45f306dc9c883p-1 + kRound) - kRound;
  return (x - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34;
}

// The sine of the angle x + quarter_turns * pi/2, of a magnitude of at most kLargestAngle.
TW_INLINE float sine_of(float x, int quarter_turns) {
  double n;
  const float rest = static_cast<float>(less_quarter_turns(x, n));
  const float square = rest * rest;
  float sine = fused(2.71827457e-6f, square, -1.98393303e-4f);
  sine = fused(sine, square, 8.33332911e-3f);
  sine = fused(sine, square, -0.166666672f);
  sine = fused(sine * square, rest, rest);
  float cosine = fused(2.47995158e-5f, square, -1.38888834e-3f);
  cosine = fused(cosine, square, 4.16666679e-2f);
  cosine = fused(cosine, square * square, fused(square, -0.5f, 1.0f));
  const int quarter = static_cast<int>(n) + quarter_turns;
  const float result = quarter & 1 ? cosine : sine;
  return quarter & 2 ? -result : result;
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
