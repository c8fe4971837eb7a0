"""Numba's compilation without what no kernel needs: each function is optimized once.

Numba optimizes every function and translates it into machine code, and then once more as a part of
each function that calls it. Around a loop over planes there are five layers at least: the function
that Python calls, two wrappers of Numba's, the body of the loop, and what it calls. Here functions
stay as they were generated, and are linked into those that Python calls, which are optimized as a
whole.
"""

import gc
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from llvmlite.binding import parse_bitcode
from numba.core import compiler, config, event
from numba.core.caching import Cache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from hybrid_nbody.backends.caches import note_unwritable_cache
from hybrid_nbody.files.atomic import reason
from hybrid_nbody.interrupts import interrupted_afterwards

LOOP_ARGUMENTS = 7
"""Arguments by position with which Numba compiles the body of a parallel loop."""


def compile_once() -> None:
    """Let Numba compile in this way from now on."""
    generator = cpu_target.target_context.codegen()
    if generator._library_class is not LinkedLibrary:
        generator._library_class = LinkedLibrary
        signs = (*generator.magic_tuple(), LinkedLibrary.__name__)
        generator.magic_tuple = lambda: signs  # Numba asks the system for every function anew
        event.register("numba:compile", _Pause())
        IndexDataCacheFile.save = _save_before_naming
        Cache._guard_against_spurious_io_errors = _despite_faults
        Cache.load_overload = _load_without_registries
        UserProvidedCacheLocator.from_function = classmethod(_locator_of)
        compiler.compile_ir = _for_loops_alone(compiler.compile_ir)


def _for_loops_alone(compile_ir: Callable[..., Any]) -> Callable[..., Any]:
    """Return Numba's compilation of the bodies of parallel loops, without entries for Python and C.

    Nobody calls them there, and they take a tenth of the time.
    """

    def compile_body(*arguments: Any, **options: Any) -> Any:
        if len(arguments) == LOOP_ARGUMENTS:  # everybody else names them
            *first, flags, local_types = arguments
            flags = flags.copy()
            flags.no_cpython_wrapper = True
            flags.no_cfunc_wrapper = True
            arguments = (*first, flags, local_types)
        return compile_ir(*arguments, **options)

    return compile_body


def _save_before_naming(cache: Any, key: Any, code: Any) -> None:
    """Keep the code of a function, and only then name its file in the index.

    Numba writes the index first: another process that looks in between finds a name without a file,
    and compiles once more. Numba also counts the files in its index: two processes that compile a
    function for different types at once would choose the same name, and the index of one could name
    the code of the other. The name is therefore a random one. Of two that write the index at once
    one still loses its entry, and that function is compiled once more later.
    """
    unique = cache._data_name_pattern.format(number=uuid.uuid4().int)
    name = cache._load_index().get(key, unique)
    cache._save_data(name, code)
    cache._save_index(cache._load_index() | {key: name})


def _load_without_registries(cache: Any, signature: Any, target: Any) -> Any:
    """Return a function from the cache, None if it is not there.

    Numba first makes everything ready for a compilation, which would do so itself: a quarter of a
    second for code that needs no more than Numba's run-time system.
    """
    rtsys.initialize(target)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, target)


def _locator_of(locators: Any, function: Any, path: str) -> Any:
    """Return where the code of a function is kept, if the user or `prepare_numba` says where.

    Numba writes a file there for each function, to see whether it can. `prepare_numba` has.
    """
    is_kept = config.CACHE_DIR and os.path.exists(path)  # what is typed in has no file
    return locators(function, path) if is_kept else None


@contextmanager
def _despite_faults(cache: Any) -> Iterator[None]:
    """Go on where the code of a function cannot be kept, as on a full disk."""
    try:
        yield
    except OSError as error:
        folder = os.environ["NUMBA_CACHE_DIR"]
        note_unwritable_cache("NUMBA_CACHE_DIR", folder, reason(error))


def at_first_compilation(action: Callable[[], object]) -> AbstractContextManager[object]:
    """Call `action` when Numba first compiles in the block; what it loads from a cache is none."""
    block: AbstractContextManager[object] = event.install_listener("numba:compile", _First(action))
    return block


class LinkedLibrary(JITCodeLibrary):
    """The code of a function and of all that it calls; machine code once somebody asks for it."""

    def __init__(self, generator: Any, name: str):
        super().__init__(generator, name)
        self._emitted = False
        self._environments: dict[str, object] = {}
        self._bitcode = b""

    def serialize_using_object_code(self) -> Any:
        """Return what the cache keeps of a function: machine code, code to link, and its names."""
        name, kind, (machine_code, bitcode) = super().serialize_using_object_code()
        return name, kind, (machine_code, bitcode, _names_defined_in(self._shared_module))

    @classmethod
    def _unserialize(cls, generator: Any, state: Any) -> Any:
        """Return a function from the cache, ready to be called."""
        name, _, (machine_code, bitcode, names) = state
        library = generator.create_library(name)
        library._bitcode = bitcode
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        generator._engine._defined_symbols.update(names)
        return library

    def _get_module_for_linking(self) -> Any:
        """Return the code for functions that call this one.

        That of a function from the cache is read when it is first asked for: this takes a third of
        the time of loading it, and those that Python calls are not linked into others.
        """
        if self._bitcode:
            self._shared_module = parse_bitcode(self._bitcode)
            self._bitcode = b""
        return super()._get_module_for_linking()

    def finalize(self) -> None:
        """Link what the function calls; nothing can be added any more."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            if isinstance(library, LinkedLibrary):  # else compiled before `compile_once`
                self._environments.update(library._environments)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def _optimize_functions(self, ll_module: Any) -> None:
        """Prepare functions by Numba's passes, which it sets up anew for every declaration, too."""
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function; zero if Python can call none of that name."""
        self._ensure_finalized()
        if not self._emitted and (self._is_loop_body() or not self._defines(name)):
            return 0
        self._emit()
        address: int = super().get_pointer_to_function(name)
        return address

    @property
    def codegen(self) -> Any:
        """What stores environments: the code generator, for code that is not there yet this."""
        return self._codegen if self._emitted else self

    def set_env(self, name: str, environment: object) -> None:
        """Keep the environment of a function until there is code that uses it."""
        self._environments[name] = environment

    def _emit(self) -> None:
        """Optimize the code and translate it into machine code, once."""
        self._ensure_finalized()
        if not self._emitted:
            self._codegen._check_llvm_bugs()
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
            self._store_environments()

    def _store_environments(self) -> None:
        for name, environment in self._environments.items():
            if self._codegen._engine.get_global_value_address(name):
                self._codegen.set_env(name, environment)

    def _finalize_final_module(self) -> None:
        """Translate the code, or load what was read from a cache."""
        self._emitted = True
        with interrupted_afterwards():  # or Numba would miss the machine code that LLVM brings
            super()._finalize_final_module()

    def _get_compiled_object(self) -> Any:
        self._emit()
        return super()._get_compiled_object()

    def get_asm_str(self) -> str:
        """Return the assembly."""
        self._emit()
        text: str = super().get_asm_str()
        return text

    def get_llvm_str(self) -> str:
        """Return the optimized code of LLVM."""
        self._emit()
        text: str = super().get_llvm_str()
        return text

    def _is_loop_body(self) -> bool:
        """Return whether this is the body of a parallel loop: Numba makes an entry point for it."""
        return self.name.startswith("__numba_parfor_gufunc")

    def _defines(self, name: str) -> bool:
        try:
            return not self._final_module.get_function(name).is_declaration
        except NameError:
            return False


def _names_defined_in(module: Any) -> set[str]:
    """Return the names of the functions and variables of a module, as Numba's engine keeps them."""
    found = (*module.functions, *module.global_variables)
    return {value.name for value in found if not value.is_declaration}


class _Pause(event.Listener):
    """Collects no garbage during a compilation: it looks at millions of objects that stay."""

    def __init__(self) -> None:
        self.depth = 0
        self.collects = True

    def on_start(self, event: Any) -> None:
        """Stop the collection."""
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Resume the collection if there was one."""
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()


class _First(event.Listener):
    """Calls an action at the first compilation."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.action = action
        self.seen = False

    def on_start(self, event: Any) -> None:
        """Call the action, unless it was called."""
        if not self.seen:
            self.seen = True
            self.action()

    def on_end(self, event: Any) -> None:
        """Do nothing."""
