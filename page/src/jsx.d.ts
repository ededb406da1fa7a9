import type * as R from "react";

declare global {
  namespace JSX {
    type Element = R.JSX.Element;
    type ElementType = R.JSX.ElementType;
    interface ElementClass extends R.JSX.ElementClass {}
    interface ElementAttributesProperty extends R.JSX.ElementAttributesProperty {}
    interface ElementChildrenAttribute extends R.JSX.ElementChildrenAttribute {}
    interface IntrinsicAttributes extends R.JSX.IntrinsicAttributes {}
    interface IntrinsicClassAttributes<T> extends R.JSX.IntrinsicClassAttributes<T> {}
    interface IntrinsicElements extends R.JSX.IntrinsicElements {}
  }
}
