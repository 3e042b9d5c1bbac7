// The compiled part of fmt, once more: libtilewright.so carries it, so that a program which loads
// it needs no libfmt. Debian's static libfmt is not position independent.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template FMT_API char decimal_point_impl<char>(locale_ref);
#if FMT_VERSION < 110000  // no template since then
template FMT_API void vformat_to<char>(buffer<char>&, string_view, format_args, locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
