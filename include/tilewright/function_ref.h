#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace tilewright {

namespace detail {
[[noreturn]] void raise_empty_callable();
}

template <typename Signature>
class FunctionRef;

// A callable that a function is given and calls before it returns, such as the body of a loop. It
// is two words and owns nothing, so that a lambda costs the compiler less than as a std::function.
// It is a type of parameters alone: what it refers to may end with the call. Who keeps a callable
// takes a std::function. To call none raises Error(usage).
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  FunctionRef() = default;  // none
  FunctionRef(std::nullptr_t) {}
  template <typename Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_invocable_r_v<Result, Callable&, Arguments...>)
      FunctionRef(Callable&& callable) {
    // An empty std::function is none, and so is a null pointer.
    if constexpr (requires { callable.operator bool(); }) {
      if (!callable) return;
    } else if constexpr (std::is_pointer_v<std::remove_cvref_t<Callable>>) {
      if (callable == nullptr) return;
    }
    if constexpr (std::is_function_v<std::remove_reference_t<Callable>>) {
      callable_ = reinterpret_cast<void*>(&callable);
    } else {
      callable_ = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
    }
    call_ = [](void* callable, Arguments... arguments) -> Result {
      using Pointer = std::remove_reference_t<Callable>*;
      return static_cast<Result>(
          (*reinterpret_cast<Pointer>(callable))(std::forward<Arguments>(arguments)...));
    };
  }

  Result operator()(Arguments... arguments) const {
    if (call_ == nullptr) detail::raise_empty_callable();
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  void* callable_ = nullptr;
  Result (*call_)(void*, Arguments...) = nullptr;
};

}  // namespace tilewright
