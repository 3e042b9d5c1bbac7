#pragma once

#include "cpu/kernels/vectors.h"

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

// x times a polynomial of degree 6 of what |x| lies beside the middle of one of eight intervals of
// length 1/2. Of the coefficients of one power each lane takes that of its interval. Several
// vectors take turns: one waits for its product while the others begin theirs.
template <int count>
TW_INLINE void erf_of(Floats (&x)[count]) {
  constexpr float kPolynomials[][8] = {
      {-0.019864168f, 0.0115784965f, 0.0121148638f, -0.00252056494f, -0.00321585219f,
       -0.000538690307f, 0.000127264721f, 9.91585403e-5f},
      {-0.0279093441f, -0.0420840941f, 0.00390895223f, 0.0159508549f, 0.00470787892f,
       -0.000504931202f, -0.000766576035f, -0.000390615925f},
      {0.0990090072f, -0.0122303655f, -0.0600377209f, -0.0245604683f, 0.00159386662f, 0.0049205469f,
       0.00288094813f, 0.00145993917f},
      {0.0811453834f, 0.173990414f, 0.0811228231f, -0.00815028697f, -0.0260713287f, -0.0174457915f,
       -0.00958402641f, -0.00540464837f},
      {-0.352815032f, -0.132456452f, 0.0708163679f, 0.116160609f, 0.0839498416f, 0.0505724512f,
       0.0308298692f, 0.0199421085f},
      {-0.138109148f, -0.392502099f, -0.411183625f, -0.306423128f, -0.204257667f, -0.138126791f,
       -0.0984093472f, -0.0735416934f},
      {1.11529422f, 0.97321403f, 0.763723552f, 0.582512438f, 0.456238866f, 0.372039348f,
       0.313723445f, 0.271186382f},
  };
  constexpr float kOne = 3.91917944f;  // of which it is 1
  constexpr float kFirstMiddle = 0.1875f;
  constexpr float kRound = 0x1.8p22f;  // to halves, which its last bits count
  Floats size[count], rest[count], sum[count];
  Ints place[count];
  unrolled<count>([&](auto i) {
    size[i.value] = at_most(magnitude(x[i.value]), kOne);
    const Floats behind = size[i.value] - kFirstMiddle;
    const Floats counted = behind + kRound;
    rest[i.value] = behind - (counted - kRound);
    place[i.value] = bits_of(counted);
    sum[i.value] = one_of_eight(kPolynomials[0], place[i.value]);
  });
  unrolled<6>([&](auto power) {
    unrolled<count>([&](auto i) {
      const Floats next = one_of_eight(kPolynomials[power.value + 1], place[i.value]);
      sum[i.value] = fused(sum[i.value], rest[i.value], next);
    });
  });
  unrolled<count>(
      [&](auto i) { x[i.value] = with_sign(size[i.value] * sum[i.value], x[i.value]); });
}
TW_INLINE Floats erf_of(Floats x) {
  Floats one[1] = {x};
  erf_of(one);
  return one[0];
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
